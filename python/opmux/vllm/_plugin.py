"""The entry point that vLLM calls once in each of its processes."""

from __future__ import annotations

import os
from importlib import import_module
from logging import getLogger

from .._runtime import keep_state_page

_log = getLogger("vllm.opmux")
_done: set[str] = set()


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
    """Whether the environment says that vLLM is to be left as it is."""
    return os.environ.get("OPMUX_DISABLE", "") in ("1", "true", "on")


def register() -> None:
    """Puts opmux into this process's vLLM. May be called again; never raises: what cannot be
    put in is logged and left to vLLM."""
    if disabled():
        return
    try:
        if not import_module("vllm.platforms").current_platform.is_cpu():
            _log.info("opmux: vLLM is left as it is: its platform is not the CPU")
            return
        keep_state_page()
        import_module("opmux.torch")  # its operators, for compiled graphs
    except Exception as error:
        _log.warning("opmux: vLLM is left as it is: %s", error)
        return
    for name in ("norms", "stand_ins", "linear", "attention", "moe", "report"):
        if name in _done:
            continue
        try:
            _hook(name)
            _done.add(name)
        except Exception as error:
            _log.warning("opmux: %s are left to vLLM: %s: %s", name, type(error).__name__, error)
