"""Linear layers with unquantized weights."""

from __future__ import annotations

from importlib import import_module
from logging import getLogger
from typing import Any

import torch

from .. import ops
from . import _native_linear
from ._native_linear import Linear, Range
from ._settings import Settings

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_log = getLogger("vllm.opmux")


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


def _measured(layer: Any, settings: Settings) -> list[Range]:
    """The measured ranges in which opmux and vLLM were compared; none if the settings ask for
    opmux."""
    if settings.asked:
        return []
    try:
        return _native_linear.ranges_of(layer.weight, getattr(layer, "bias", None))
    except Exception as error:
        _log.warning("opmux: measured speeds of vLLM's linear layers are not used: %s", error)
        return []


def _native_rows(ranges: list[Range]) -> list[tuple[int, int]]:
    """The numbers of rows for which vLLM's kernel is the fastest: first and last of each range."""
    joined: list[tuple[int, int]] = []
    for one in ranges:
        if not one.native:
            continue
        if joined and joined[-1][1] + 1 == one.first:
            joined[-1] = joined[-1][0], one.last
        else:
            joined.append((one.first, one.last))
    return joined


def _by_rows(theirs: list[tuple[int, int]], native: Linear) -> Linear:
    """A function that calls vLLM's kernel for these numbers of rows, and opmux for others."""

    def call(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
        rows = x.numel() // x.shape[-1]
        for first, last in theirs:
            if first <= rows <= last:
                return native(x, weight, bias)
        return linear(x, weight, bias)

    return call


def hook() -> None:
    """Replaces the vLLM function that packs a layer's weight and chooses its GEMM."""
    utils: Any = import_module("vllm.model_executor.layers.utils")
    original = utils.dispatch_cpu_unquantized_gemm
    _native_linear.choose_with(original)
    _native_linear.offer()

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:
        settings = Settings.current()
        layer.opmux_reason = reason_against(layer, settings)
        ranges = [] if layer.opmux_reason else _measured(layer, settings)
        if ranges and all(one.native for one in ranges):
            rows = f"{ranges[0].first} to {ranges[-1].last} rows"
            layer.opmux_reason = f"vLLM's kernel was measured to be the fastest for {rows}"
        if layer.opmux_reason:
            original(layer, remove_weight)
            return
        # opmux packs only plain Parameters; vLLM's subclass is needed only for loading shards.
        layer.weight = torch.nn.Parameter(layer.weight.data, requires_grad=False)
        layer.cpu_linear = linear
        theirs = _native_rows(ranges)
        # A compiled graph has one size for all numbers of rows, so that it cannot choose by them.
        if theirs and not settings.compiled:
            native = _native_linear.native_of(layer.weight, getattr(layer, "bias", None))
            layer.cpu_linear = _by_rows(theirs, native)
            layer.opmux_shared = ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in theirs)

    utils.dispatch_cpu_unquantized_gemm = dispatch_cpu_unquantized_gemm
