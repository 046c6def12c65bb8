"""vLLM's own computations in torch operators, as the last candidates on devices that have no
reference: a call that opmux's implementations decline or fail still succeeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .._errors import AlreadyExists, Frozen
from .._implementations import implementation

NAME = "vllm_torch.native"

# Every function takes the stream because its work is on torch's current stream, which is that of
# the call, and is not done when it returns.


def _norm(x: Tensor, weight: Tensor | None, eps: float, round_before_weight: bool) -> Tensor:
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    if weight is not None:
        wide = (wide.to(weight.dtype) if round_before_weight else wide) * weight
    return wide.to(x.dtype)


def rms_norm(
    x: Tensor, weight: Tensor | None, eps: float, round_before_weight: bool, *, stream: int
) -> Tensor:
    return _norm(x, weight, eps, round_before_weight)


def fused_add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None,
    eps: float,
    round_before_weight: bool,
    *,
    stream: int,
) -> None:
    residual.add_(x)
    x.copy_(_norm(residual, weight, eps, round_before_weight))


def _gated(x: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    half = x.shape[-1] // 2
    return activation(x[..., :half]) * x[..., half:]


def silu_and_mul(x: Tensor, *, stream: int) -> Tensor:
    return _gated(x, functional.silu)


def _gelu(approximate: str) -> Callable[[Tensor], Tensor]:
    return lambda x: functional.gelu(x, approximate=approximate)


def gelu_and_mul(x: Tensor, approximate: str, *, stream: int) -> Tensor:
    return _gated(x, _gelu(approximate))


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, style: str) -> None:
    """Rotates the first elements of each head in place."""
    size = 2 * cos.shape[-1]
    if style == "neox":
        first, second = x[..., : size // 2], x[..., size // 2 : size]
    else:
        first, second = x[..., :size:2], x[..., 1:size:2]
    turned = first * cos - second * sin, second * cos + first * sin
    first.copy_(turned[0])
    second.copy_(turned[1])


def rotary_embedding(
    q: Tensor, k: Tensor | None, positions: Tensor, cos_sin: Tensor, style: str, *, stream: int
) -> None:
    cos, sin = cos_sin[positions.long()].unsqueeze(-2).chunk(2, dim=-1)
    for x in (q, k):
        if x is not None:
            _rotate(x, cos.to(x.dtype), sin.to(x.dtype), style)


def topk_softmax(logits: Tensor, renormalize: bool, *, out: Sequence[Tensor], stream: int) -> None:
    weights, ids = out
    best = torch.softmax(logits.float(), dim=-1).topk(weights.shape[-1], dim=-1)
    values = best.values
    weights.copy_(values / values.sum(dim=-1, keepdim=True) if renormalize else values)
    ids.copy_(best.indices)


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu, "gelu": _gelu("none"), "gelu_tanh": _gelu("tanh"),
}  # fmt: skip


def fused_moe(
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    activation: str,
    *,
    stream: int,
) -> Tensor:
    """Computes every expert for every token, so that nothing waits for the ids."""
    total = torch.zeros_like(x, dtype=torch.float32)
    for expert in range(w1.shape[0]):
        share = (topk_weights * (topk_ids == expert)).sum(dim=-1, keepdim=True)
        inner = _gated(functional.linear(x, w1[expert]), _ACTIVATIONS[activation])
        total += share * functional.linear(inner, w2[expert])
    return total.to(x.dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        rms_norm, fused_add_rms_norm, silu_and_mul, gelu_and_mul, rotary_embedding, topk_softmax,
        fused_moe,
    )
}  # fmt: skip


def is_native(id: str) -> bool:
    """Returns whether an id is that of one of these computations."""
    return id.endswith(f"/{NAME}")


def offer(operator: str, device: str) -> None:
    """Registers vLLM's computation of an operator for a type of device, with the lowest priority,
    unless it is registered or the runtime is frozen."""
    with suppress(AlreadyExists, Frozen):
        implementation(
            operator, NAME, vendor="vllm", priority=1, device=device, stream=True,
            capture_safe=True,
        )(_FUNCTIONS[operator])  # fmt: skip
