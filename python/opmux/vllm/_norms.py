"""RMS norms, registered as providers of vLLM's IR operators."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from .. import ops
from .._implementations import implementation
from . import _devices
from ._settings import Settings

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
PROVIDER, EXACT = "opmux", "opmux_exact"
EAGER = "rms_norm/vllm.eager"
NAMES = ("rms_norm", "fused_add_rms_norm")
_offered: list[Any] = []

# vLLM requires the parameter names, types and defaults of these functions to match its operators.


def rms_norm(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> Tensor:
    """Rounds before multiplying by the weight, as vLLM does."""
    normalized: Tensor = ops.rms_norm(x, weight, epsilon, True)
    return normalized


def fused_add_rms_norm(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Normalizes the rounded sum that is stored as the residual, in place."""
    ops.fused_add_rms_norm(x, x_residual, weight, epsilon, True)
    return x, x_residual


def exact_fused_add_rms_norm(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Normalizes the f32 sum before it is rounded to the residual, as vLLM does."""
    total = x.float() + x_residual.float()
    x_residual.copy_(total)
    x.copy_(ops.rms_norm(total, weight, epsilon, True))
    return x, x_residual


def as_eager(x: Tensor, weight: Tensor | None, eps: float, round_before_weight: bool) -> Tensor:
    """Computes the norm as vLLM's eager layer does, so that torch's summation order is kept."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    return wide if weight is None else wide.to(weight.dtype) * weight


def _takes_eager(x: Any, weight: Any, eps: float, round_before_weight: bool) -> bool | str:
    return round_before_weight or "it always rounds before multiplying by the weight"


def offer_eager() -> None:
    """Registers an implementation with the highest priority that is bit-identical to vLLM's eager
    layer."""
    if not _offered:
        _offered.append(
            implementation("rms_norm", "vllm.eager", vendor="vllm", priority=900)(as_eager)
        )
        _offered[0].verifier(_takes_eager)


def takes_norm(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> bool:
    """Returns whether opmux's rms_norm supports this call."""
    floats = x.dtype in _FLOATS and (weight is None or weight.dtype in _FLOATS)
    return variance_size is None and floats


def takes_fused_norm(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> bool:
    """Returns whether opmux's fused_add_rms_norm supports this call."""
    return x_residual.dtype == x.dtype and takes_norm(x, weight, epsilon, variance_size)


def takes_norm_on_device(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> bool:
    """As `takes_norm`, on platforms other than the CPU."""
    known = takes_norm(x, weight, epsilon, variance_size)
    return known and not _devices.reason_against("rms_norm", x.dtype)


def takes_fused_norm_on_device(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> bool:
    """As `takes_fused_norm`, on platforms other than the CPU."""
    known = takes_fused_norm(x, x_residual, weight, epsilon, variance_size)
    return known and not _devices.reason_against("fused_add_rms_norm", x.dtype)


def _register_providers(operators: Any) -> None:
    one = takes_norm if _devices.on_cpu() else takes_norm_on_device
    two = takes_fused_norm if _devices.on_cpu() else takes_fused_norm_on_device
    fused: dict[str, Any] = {"supports_args": two, "inplace": True}
    if PROVIDER not in operators.rms_norm.impls:
        operators.rms_norm.register_impl(PROVIDER, supports_args=one)(rms_norm)
    for name, function in ((PROVIDER, fused_add_rms_norm), (EXACT, exact_fused_add_rms_norm)):
        if name not in operators.fused_add_rms_norm.impls:
            operators.fused_add_rms_norm.register_impl(name, **fused)(function)


def _put_first(platform: Any) -> None:
    original = platform.get_default_ir_op_priority

    def get_default_ir_op_priority(cls: Any, vllm_config: Any) -> Any:
        priority = original(vllm_config)
        settings = Settings.read(vllm_config)
        if not settings.reason_against("norm"):
            priority.rms_norm.insert(0, PROVIDER)
            priority.fused_add_rms_norm.insert(0, EXACT if settings.exact else PROVIDER)
        return priority

    platform.get_default_ir_op_priority = classmethod(get_default_ir_op_priority)


def hook() -> None:
    """Registers the norms with vLLM and puts them first in its priority list."""
    import_module("vllm.kernels")  # registers vLLM's providers first
    _register_providers(import_module("vllm.ir").ops)
    _put_first(type(import_module("vllm.platforms").current_platform))


def reason_against(module: Any, settings: Settings) -> str:
    """Returns why vLLM keeps a norm; empty if opmux takes it, with or without a residual."""
    if getattr(module, "variance_size_override", None) is not None:
        return "it computes the variance from part of the row"
    return settings.reason_against("norm") or ("" if taken() else _devices.reason_against(NAMES[0]))


def taken() -> list[str]:
    """Returns the operators of norms that opmux runs."""
    return [name for name in NAMES if not _devices.reason_against(name)]
