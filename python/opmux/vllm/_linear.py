"""Linear layers with unquantized weights."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from .. import ops
from ._settings import Settings

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
    """Calls opmux's linear. The weight is a Parameter, so implementations may keep a packed
    copy."""
    return ops.linear(x, weight, bias)


def reason_against(layer: Any, settings: Settings) -> str:
    """Returns why vLLM keeps a layer; empty if opmux takes it."""
    weight = layer.weight
    if weight.is_meta:
        return "its weight is on the meta device"
    if weight.ndim != 2:
        return "its weight is not a matrix"
    if weight.dtype not in _FLOATS:
        return f"its weight has dtype {weight.dtype}"
    if settings.exact:
        return "vLLM sums in a different order than opmux"
    return settings.reason_against("linear")


def hook() -> None:
    """Replaces the vLLM function that packs a layer's weight and chooses its GEMM."""
    utils: Any = import_module("vllm.model_executor.layers.utils")
    original = utils.dispatch_cpu_unquantized_gemm

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:
        layer.opmux_reason = reason_against(layer, Settings.current())
        if layer.opmux_reason:
            original(layer, remove_weight)
            return
        # opmux packs only plain Parameters; vLLM's subclass is needed only for loading shards.
        layer.weight = torch.nn.Parameter(layer.weight.data, requires_grad=False)
        layer.cpu_linear = linear

    utils.dispatch_cpu_unquantized_gemm = dispatch_cpu_unquantized_gemm
