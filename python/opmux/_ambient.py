"""Ambient facts, and the search for what a verifier reads besides the facts of a call.

While a verifier runs, a hook sees the environment variables and the modes of torch that it reads.
Modes that are ambient facts count as facts, so that the answer is cached for calls that agree in
them. Anything else makes the answer valid for one call only.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Protocol

from . import _core
from ._runtime import default_runtime

NAMES = ("grad", "capturing", "deterministic", "training", "inference", "autocast")

# Functions of torch._C that return an ambient fact.
_FACT_OF = {
    "torch.is_grad_enabled": "grad",
    "torch.is_inference_mode_enabled": "inference",
    "torch._get_deterministic_algorithms": "deterministic",
    "torch._is_any_autocast_enabled": "autocast",
    "torch.is_autocast_enabled": "autocast",
    "torch.is_autocast_cpu_enabled": "autocast",
    "torch._cuda_isCurrentStreamCapturing": "capturing",
}
# They tell devices apart, so that the fact implies their answer only while autocast is off.
_OF_A_DEVICE = ("torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled")
# Functions of torch._C that return a mode which is not a fact.
_MODES = frozenset(
    f"torch.{name}"
    for name in (
        "get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_cpu_dtype",
        "is_autocast_cache_enabled", "_get_deterministic_algorithms_warn_only",
        "_get_deterministic_fill_uninitialized_memory", "_get_cublas_allow_tf32",
        "_get_cublas_allow_fp16_reduced_precision_reduction", "_get_cudnn_allow_tf32",
        "_get_cudnn_benchmark", "_get_cudnn_deterministic", "_get_cudnn_enabled",
        "_get_float32_matmul_precision", "_get_fp32_precision_getter", "_get_flash_sdp_enabled",
        "_get_mem_efficient_sdp_enabled", "_get_math_sdp_enabled", "_get_cudnn_sdp_enabled",
        "_get_mkldnn_enabled", "get_default_dtype", "get_num_threads", "is_anomaly_enabled",
        "_get_tracing_state", "_len_torch_dispatch_stack", "_len_torch_function_stack",
    )
)  # fmt: skip


class Reads(Protocol):
    """Receives what a verifier reads."""

    def ambient(self, name: str) -> bool:
        """Records that an ambient fact was read, and returns it."""
        ...

    def outside(self, what: str) -> None:
        """Records that something was read that is not a fact."""
        ...


_running: ContextVar[Reads | None] = ContextVar("opmux_reads", default=None)
_watched: list[Any] = []  # torch._C, or None, once the extension knows what to watch


def _watch() -> None:
    torch = sys.modules.get("torch._C")
    if _watched == [torch]:
        return
    environ = type(os.environ)
    methods = (environ.__getitem__, environ.__iter__, environ.__len__)
    _core.watch_reads_of(tuple(method.__code__ for method in methods), torch)
    _watched[:] = [torch]


def _note(reads: Reads, name: str) -> None:
    fact = _FACT_OF.get(name)
    if fact is None:
        if name in _MODES or name.startswith("os.environ"):
            reads.outside(name)
        return
    known = reads.ambient(fact)
    # They differ if the verifier was called by C++ code, or changes the mode itself.
    differs = known != bool(_core.torch_ambient() >> NAMES.index(fact) & 1)
    if differs or (known and name in _OF_A_DEVICE):
        reads.outside(name)


def call_watched(
    reads: Reads, function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]
) -> Any:
    """Calls a verifier and records what it reads besides its arguments."""
    _watch()
    token = _running.set(reads)
    try:
        return _core.call_watched(function, tuple(args), kwargs, functools.partial(_note, reads))
    finally:
        _running.reset(token)


def bits_of(names: Iterable[str]) -> int:
    """Returns ambient facts as a bit mask."""
    bits = 0
    for name in names:
        if name not in NAMES:
            raise ValueError(f"'{name}' is not an ambient fact: {', '.join(NAMES)}")
        bits |= 1 << NAMES.index(name)
    return bits


def ambient(name: str) -> bool:
    """Returns an ambient fact as a call that is made now would see it: `grad`, `inference`,
    `deterministic`, `autocast` and `capturing` are torch's modes or set by `options(facts=...)`;
    `training` is set by `options` only. In a verifier, the fact becomes part of the decision's key,
    so that the answer is cached for calls that agree in it."""
    bits = bits_of([name])
    reads = _running.get()
    return bool(_core.ambient(default_runtime()) & bits) if reads is None else reads.ambient(name)
