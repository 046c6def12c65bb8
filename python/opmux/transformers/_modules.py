"""Forward functions that stand in for those of norms and gated feed-forward layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .. import ops

Forward = Callable[..., Any]


def llama_norm(self: Any, hidden_states: torch.Tensor) -> Any:
    """Rounded before it is multiplied by the weight."""
    return ops.rms_norm(hidden_states, self.weight, self.variance_epsilon, True)


def gemma_norm(self: Any, x: torch.Tensor) -> Any:
    """The weight is an offset from one, in f32."""
    return ops.rms_norm(x, 1.0 + self.weight.float(), self.eps)


def _is_plain(layer: Any) -> bool:
    """Whether a layer is nothing but a product with its weight."""
    hooked = layer._forward_hooks or layer._forward_pre_hooks or "forward" in layer.__dict__
    return type(layer) is nn.Linear and not hooked


def _halves(self: Any, x: torch.Tensor) -> torch.Tensor:
    """The outputs of both projections, side by side."""
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


def silu_mlp(self: Any, x: torch.Tensor) -> Any:
    return self.down_proj(ops.silu_and_mul(_halves(self, x)))


def gelu_mlp(self: Any, x: torch.Tensor) -> Any:
    return self.down_proj(ops.gelu_and_mul(_halves(self, x)))


def gelu_tanh_mlp(self: Any, x: torch.Tensor) -> Any:
    return self.down_proj(ops.gelu_and_mul(_halves(self, x), "tanh"))


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


_ACTIVATIONS: tuple[tuple[Forward, Forward], ...] = (
    (F.silu, silu_mlp),
    (F.gelu, gelu_mlp),
    (_gelu_tanh, gelu_tanh_mlp),
)


def mlp_forward(module: nn.Module) -> tuple[Forward | None, str]:
    """What stands in for a gated layer's forward, or why nothing does."""
    parts = ("gate_proj", "up_proj", "down_proj", "act_fn")
    missing = [part for part in parts if not hasattr(module, part)]
    if missing:
        return None, f"it has no {missing[0]}"
    points = torch.linspace(-4, 4, 65)
    act: Any = module.act_fn
    values = act(points)
    for activation, forward in _ACTIVATIONS:
        if torch.allclose(values, activation(points), atol=1e-6):
            return forward, ""
    return None, f"its activation is {type(act).__name__}"


def norm_forward(module: nn.Module) -> tuple[Forward | None, str]:
    """What stands in for a norm's forward, or why nothing does."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1:
        return None, "it has no weight of one dimension"
    if getattr(module, "bias", None) is not None:
        return None, "it has a bias"
    candidates: list[Forward] = []
    if hasattr(module, "variance_epsilon"):
        candidates.append(llama_norm)
    if hasattr(module, "eps"):
        candidates.append(gemma_norm)
    for forward in candidates:
        if agrees(module, forward, weight.shape[0]):
            return forward, ""
    return None, "its results are not those of a root-mean-square norm that opmux has"


def agrees(module: Any, forward: Forward, size: int) -> bool:
    """Whether a stand-in gives what a module gives, tried on a few numbers."""
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
