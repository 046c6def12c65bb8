"""Derivatives of four operators, computed with torch functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

Gradients = tuple[Any, ...]


@dataclass(frozen=True)
class Formula:
    """The derivative of an operator: the function that saves tensors, and the backward pass."""

    keep: Callable[[Any, tuple[Any, ...], Any], None]
    backward: Callable[..., Gradients]

    def register(self, name: str, library: torch.library.Library) -> None:
        """Registers the derivative with torch."""

        def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            self.keep(ctx, inputs, output)

        torch.library.register_autograd(name, self.backward, setup_context=setup, lib=library)


def _rows(tensor: torch.Tensor, dims: int = 1) -> torch.Tensor:
    """Sums over the leading dimensions."""
    leading = tuple(range(tensor.dim() - dims))
    return tensor.sum(leading) if leading else tensor


def _keep_rms_norm(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.eps = inputs[2]


def _rms_norm(ctx: Any, grad: torch.Tensor) -> Gradients:
    x, weight = ctx.saved_tensors
    wide, scaled = x.float(), grad.float()
    root = torch.rsqrt(wide.square().mean(-1, keepdim=True) + ctx.eps)
    unit = wide * root
    of_weight = None
    if weight is not None:
        of_weight = _rows(scaled * unit).to(weight.dtype)
        scaled = scaled * weight.float()
    of_x = root * (scaled - unit * (scaled * unit).mean(-1, keepdim=True))
    return of_x.to(x.dtype), of_weight, None, None


def _keep_input(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[0])


def _silu_and_mul(ctx: Any, grad: torch.Tensor) -> Gradients:
    (x,) = ctx.saved_tensors
    gate, up = x.float().chunk(2, dim=-1)
    wide, sigmoid = grad.float(), torch.sigmoid(gate)
    slope = sigmoid * (1 + gate * (1 - sigmoid))
    return (torch.cat([wide * up * slope, wide * F.silu(gate)], dim=-1).to(x.dtype),)


def _keep_linear(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.bias_dtype = None if inputs[2] is None else inputs[2].dtype


def _linear(ctx: Any, grad: torch.Tensor) -> Gradients:
    x, weight = ctx.saved_tensors
    of_x = of_weight = of_bias = None
    flat = grad.reshape(-1, grad.shape[-1])
    if ctx.needs_input_grad[0]:
        of_x = (grad @ weight.to(grad.dtype)).to(x.dtype)
    if ctx.needs_input_grad[1]:
        of_weight = (flat.t() @ x.reshape(-1, x.shape[-1]).to(grad.dtype)).to(weight.dtype)
    if ctx.bias_dtype is not None and ctx.needs_input_grad[2]:
        of_bias = flat.sum(0).to(ctx.bias_dtype)
    return of_x, of_weight, of_bias


def _keep_softmax(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(output)
    ctx.scale = inputs[1]


def _softmax(ctx: Any, grad: torch.Tensor) -> Gradients:
    (y,) = ctx.saved_tensors
    wide, weights = grad.float(), y.float()
    of_x = ctx.scale * weights * (wide - (wide * weights).sum(-1, keepdim=True))
    return of_x.to(y.dtype), None


FORMULAS = {
    "rms_norm": Formula(_keep_rms_norm, _rms_norm),
    "silu_and_mul": Formula(_keep_input, _silu_and_mul),
    "linear": Formula(_keep_linear, _linear),
    "softmax": Formula(_keep_softmax, _softmax),
}
