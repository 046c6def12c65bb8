"""Decides which operators opmux runs on a vLLM platform other than the CPU: those for which its
engine has an implementation that can run on the platform's device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from logging import getLogger
from typing import Any

import torch

from .._core import Explanation
from .._information import explain
from . import _native

Samples = dict[str, Any]

_log = getLogger("vllm.opmux")
_answers: dict[tuple[str, torch.dtype], str] = {}
_model: Any = None  # the configuration of the model that was loaded last


@cache
def on_cpu() -> bool:
    """Returns whether vLLM's platform is the CPU, where opmux has every operator."""
    return bool(import_module("vllm.platforms").current_platform.is_cpu())


def device() -> torch.device:
    """Returns the device of vLLM's platform, without a number."""
    return torch.device(import_module("vllm.platforms").current_platform.device_type)


def start(model: Any) -> None:
    """Asks the engine again from now on, because a model with this configuration is loaded."""
    global _model
    _model = model
    _answers.clear()


def _sizes() -> tuple[int, int, int]:
    """Returns the widths of a row, of an activated row and of a head of the model."""
    if _model is None:
        return 4096, 4096, 128
    hidden = int(_model.get_hidden_size())
    inner = getattr(_model.hf_text_config, "intermediate_size", None)
    return hidden, inner if isinstance(inner, int) else hidden, int(_model.get_head_size())


def _samples(operator: str, dtype: torch.dtype) -> Samples:
    """Makes small arguments like those of the model's layers."""

    def made(*shape: int, of: torch.dtype = dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=of, device=device())

    hidden, inner, head = _sizes()
    if operator in ("rms_norm", "fused_add_rms_norm"):
        residual = {"residual": made(1, hidden)} if operator == "fused_add_rms_norm" else {}
        norm = {"x": made(1, hidden), **residual, "weight": made(hidden)}
        return {**norm, "round_before_weight": True}
    if operator == "rotary_embedding":
        heads = {"q": made(1, 1, head), "k": made(1, 1, head)}
        return {**heads, "positions": made(1, of=torch.int64), "cos_sin": made(1, head)}
    return {"x": made(1, 2 * inner)}


def _judge(operator: str, found: Explanation) -> str:
    """Returns why an operator is left to vLLM; empty if an implementation can run."""
    others = [c for c in found.candidates if not _native.is_native(c.id)]
    if any(candidate.accepted for candidate in others):
        return ""
    kind = found.device.partition(":")[0]
    near = [f"{c.id}: {c.reason}" for c in others if c.code != "caps.device"]
    return "; ".join([f"opmux has no {operator} that can run on {kind}", *near])


def _ask(operator: str, samples: Samples) -> str:
    found = explain(operator, **samples)
    reason = _judge(operator, found)
    kind = found.device.partition(":")[0]
    if not reason and kind != "cpu":
        _native.offer(operator, kind)
    return reason


def reason_against(
    operator: str,
    dtype: torch.dtype | None = None,
    samples: Callable[[], Samples] | None = None,
) -> str:
    """Returns why vLLM keeps the layers of an operator with elements of a type, by default the
    model's; empty on the CPU, and if opmux has an implementation that can run on the device.
    `samples` makes arguments like those of the layer. Asks the engine once for each model."""
    if on_cpu():
        return ""
    key = operator, dtype or getattr(_model, "dtype", None) or torch.get_default_dtype()
    if key not in _answers:
        if torch.compiler.is_compiling():  # nothing can be run on the device now
            return f"opmux was not asked about {operator} before the model was compiled"
        try:
            with torch.no_grad():
                _answers[key] = _ask(operator, samples() if samples else _samples(*key))
        except Exception as error:  # a device that torch or opmux cannot use
            _answers[key] = f"opmux cannot tell for {operator}: {type(error).__name__}: {error}"
        _log.debug("opmux: %s: %s", operator, _answers[key] or "replaced")
    return _answers[key]
