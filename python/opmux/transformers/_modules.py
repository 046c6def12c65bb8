"""Replacement forward functions for norms, linear layers and gated feed-forward layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .. import ops

Forward = Callable[..., Any]


def llama_norm(self: Any, hidden_states: torch.Tensor) -> Any:
    """Rounds the normalized values before multiplying by the weight."""
    return ops.rms_norm(hidden_states, self.weight, self.variance_epsilon, True)


def gemma_norm(self: Any, x: torch.Tensor) -> Any:
    """Gemma's norm: the factor is 1 + weight, computed in f32."""
    return ops.rms_norm(x, 1.0 + self.weight.float(), self.eps)


def layer_norm(self: Any, input: torch.Tensor) -> Any:
    return ops.layer_norm(input, self.weight, self.bias, self.eps)


def linear(self: Any, input: torch.Tensor) -> Any:
    return ops.linear(input, self.weight, self.bias)


def _is_plain(layer: Any) -> bool:
    """Returns whether a layer is an nn.Linear without hooks and without a replaced forward."""
    hooked = layer._forward_hooks or layer._forward_pre_hooks or "forward" in layer.__dict__
    return type(layer) is nn.Linear and not hooked


def _halves(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Returns the outputs of both projections, concatenated."""
    gate, up = self.gate_proj, self.up_proj
    direct = not torch.compiler.is_compiling() and not torch.is_grad_enabled()
    if not direct or gate.bias is not None or not (_is_plain(gate) and _is_plain(up)):
        return torch.cat((gate(x), up(x)), dim=-1)
    size = gate.out_features
    flat = x.reshape(-1, x.shape[-1])
    both = x.new_empty((flat.shape[0], 2 * size))
    torch.mm(flat, gate.weight.t(), out=both[:, :size])
    torch.mm(flat, up.weight.t(), out=both[:, size:])
    return both.view(*x.shape[:-1], 2 * size)


def _gated(operator: str, halves: Forward, *options: str) -> Forward:
    def forward(self: Any, x: torch.Tensor) -> Any:
        return self.down_proj(getattr(ops, operator)(halves(self, x), *options))

    forward.__name__ = operator
    return forward


def _joined(self: Any, x: torch.Tensor) -> Any:
    return self.gate_up_proj(x)


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


_ACTIVATIONS: tuple[tuple[Forward, tuple[str, ...]], ...] = (
    (F.silu, ("silu_and_mul",)),
    (F.gelu, ("gelu_and_mul",)),
    (_gelu_tanh, ("gelu_and_mul", "tanh")),
)


def mlp_forward(module: Any) -> tuple[Forward | None, str]:
    """Returns a replacement for a gated layer's forward, named after the operator, or None and the
    reason."""
    joined = hasattr(module, "gate_up_proj")
    parts = ("gate_up_proj",) if joined else ("gate_proj", "up_proj")
    for part in (*parts, "down_proj"):
        if not isinstance(getattr(module, part, None), nn.Module):
            return None, f"it has no submodule {part}"
    act = getattr(module, "activation_fn" if joined else "act_fn", None)
    if act is None:
        return None, "its activation is unknown"
    points = torch.linspace(-4, 4, 65)
    values = act(points)
    for activation, (operator, *options) in _ACTIVATIONS:
        if not torch.allclose(values, activation(points), atol=1e-6):
            continue
        forward = _gated(operator, _joined if joined else _halves, *options)
        if agrees(module, forward, getattr(module, parts[0]).in_features):
            return forward, ""
        return None, "its results differ from those of a gated layer"
    return None, f"its activation {type(act).__name__} is not supported"


def linear_forward(module: Any) -> tuple[Forward | None, str]:
    """Returns a replacement for a linear layer's forward, or None and the reason."""
    if agrees(module, linear, module.in_features):
        return linear, ""
    return None, "its results differ from those of a linear layer"


def norm_forward(module: nn.Module) -> tuple[Forward | None, str]:
    """Returns a replacement for a norm's forward, or None and the reason."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1:
        return None, "it has no one-dimensional weight"
    candidates: list[Forward] = []
    if isinstance(module, nn.LayerNorm):
        candidates.append(layer_norm)
    elif getattr(module, "bias", None) is not None:
        return None, "it has a bias"
    elif hasattr(module, "variance_epsilon"):
        candidates.append(llama_norm)
    elif hasattr(module, "eps"):
        candidates.append(gemma_norm)
    for forward in candidates:
        if agrees(module, forward, weight.shape[0]):
            return forward, ""
    return None, "its results differ from those of the norms that opmux has"


def agrees(module: Any, forward: Forward, size: int) -> bool:
    """Returns whether a replacement forward gives the module's results on a small random input."""
    example = next(iter(module.parameters()))
    if example.is_meta or example.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        return False
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 2, size, generator=generator).to(example.dtype)
    tolerance = 1e-4 if x.dtype == torch.float32 else 3e-2
    with torch.no_grad():
        wanted, found = module(x), forward(module, x)
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return False
    scale = float(wanted.float().abs().max()) or 1.0
    return float((wanted.float() - found.float()).abs().max()) <= tolerance * scale
