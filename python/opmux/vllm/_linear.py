"""Linear layers whose weights are not quantized."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from .. import ops
from ._settings import Settings

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
    """The weight is a parameter, so implementations may pack it once."""
    return ops.linear(x, weight, bias)


def reason_against(layer: Any, settings: Settings) -> str:
    """Why a layer is left to vLLM; empty if it is not."""
    weight = layer.weight
    if weight.is_meta:
        return "its weight is elsewhere"
    if weight.ndim != 2:
        return "its weight is no matrix"
    if weight.dtype not in _FLOATS:
        return f"its weight is {weight.dtype}"
    if settings.exact:
        return "vLLM adds up in another order than opmux"
    return settings.reason_against("linear")


def hook() -> None:
    """Stands in for the function by which vLLM packs a weight and chooses a product."""
    utils: Any = import_module("vllm.model_executor.layers.utils")
    original = utils.dispatch_cpu_unquantized_gemm

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:
        layer.opmux_reason = reason_against(layer, Settings.current())
        if layer.opmux_reason:
            original(layer, remove_weight)
            return
        # As torch's own type: those of vLLM tell its loaders where a shard belongs.
        layer.weight = torch.nn.Parameter(layer.weight.data, requires_grad=False)
        layer.cpu_linear = linear

    utils.dispatch_cpu_unquantized_gemm = dispatch_cpu_unquantized_gemm
