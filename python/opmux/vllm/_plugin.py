"""The entry point that vLLM calls once in each of its processes."""

from __future__ import annotations

import os
from importlib import import_module
from logging import getLogger

from .._runtime import keep_state_page
from . import _devices

_log = getLogger("vllm.opmux")
_done: set[str] = set()
_CPU_PARTS = ("norms", "stand_ins", "linear", "attention", "moe", "report")
_PARTS = ("norms", "stand_ins", "moe", "report")  # without those that replace code of vLLM's CPU


def _attention() -> None:
    registry = import_module("vllm.v1.attention.backends.registry")
    path = f"{__package__}._attention.Backend"
    registry.register_backend(registry.AttentionBackendEnum.CPU_ATTN, path)


def _hook(name: str) -> None:
    if name == "attention":
        _attention()
    else:
        import_module(f"{__package__}._{name}").hook()


def disabled() -> bool:
    """Returns whether OPMUX_DISABLE turns the plugin off."""
    return os.environ.get("OPMUX_DISABLE", "") in ("1", "true", "on")


def register() -> None:
    """Hooks opmux into vLLM in this process. May be called again. Never raises: a hook that fails
    is logged, and vLLM keeps those layers."""
    if disabled():
        return
    try:
        parts = _CPU_PARTS if _devices.on_cpu() else _PARTS
        keep_state_page()
        import_module("opmux.torch")  # registers the operators with torch, for compiled graphs
    except Exception as error:
        _log.warning("opmux: not used: %s", error)
        return
    for name in parts:
        if name in _done:
            continue
        try:
            _hook(name)
            _done.add(name)
        except Exception as error:
            _log.warning("opmux: vLLM keeps its %s: %s: %s", name, type(error).__name__, error)
