"""The opmux settings in a vLLM engine's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .._errors import InvalidArgument
from . import _devices

KINDS = ("norm", "activation", "rotary", "linear", "attention", "moe")
_FUSED = ("norm", "activation", "rotary")
_CPU_ONLY = {"linear": "linear layers", "attention": "attention"}


@dataclass(frozen=True)
class Settings:
    """The entry "opmux" of vLLM's `additional_config`."""

    kinds: tuple[str, ...] = KINDS
    """The kinds of layers that opmux replaces; vLLM keeps the others."""
    asked: bool = False
    """Whether the configuration names the kinds. If so, opmux replaces them even where vLLM's
    layers are faster."""
    exact: bool = False
    """Whether opmux rounds where vLLM's eager layers round, at some cost. If so, it replaces only
    norms, activations and rotary embeddings."""
    compiled: bool = False
    """Whether vLLM compiles the model with Inductor, which fuses small layers into one loop that is
    faster than separate calls."""

    @staticmethod
    def read(config: Any) -> Settings:
        """Returns the settings of a `VllmConfig`, or the defaults for None."""
        given = getattr(config, "additional_config", None) or {}
        entry = given.get("opmux", {}) if isinstance(given, dict) else {}
        if not isinstance(entry, dict) or not set(entry) <= {"kinds", "exact"}:
            raise InvalidArgument(
                f"opmux: additional_config['opmux'] takes 'kinds' and 'exact', not {entry!r}"
            )
        kinds = entry.get("kinds", KINDS)
        if isinstance(kinds, str) or not set(kinds) <= set(KINDS):
            raise InvalidArgument(f"opmux: kinds must be among {', '.join(KINDS)}, not {kinds!r}")
        exact = bool(entry.get("exact", False))
        return Settings(tuple(kinds), "kinds" in entry, exact, _is_compiled(config))

    @staticmethod
    def current() -> Settings:
        """Returns the settings of the engine whose model is being created."""
        return Settings.read(import_module("vllm.config").get_current_vllm_config_or_none())

    def reason_against(self, kind: str) -> str:
        """Returns why vLLM keeps a kind of layers; empty if opmux takes it."""
        if kind not in self.kinds:
            return "it was not requested"
        if not _devices.on_cpu():
            if kind in _CPU_ONLY:
                return f"opmux replaces {_CPU_ONLY[kind]} only on vLLM's CPU platform"
            if self.exact:
                return "exact results are those of vLLM's CPU platform"
        if self.compiled and kind in _FUSED and not self.asked and not self.exact:
            return "the compiler fuses it with its neighbours, which is faster"
        return ""


def _is_compiled(config: Any) -> bool:
    compilation: Any = getattr(config, "compilation_config", None)
    return bool(getattr(compilation, "mode", 0)) and compilation.backend == "inductor"
