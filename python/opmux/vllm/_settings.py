"""What an engine's configuration says about opmux."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .._errors import InvalidArgument

KINDS = ("norm", "activation", "rotary", "linear", "attention", "moe")
_FUSED = ("norm", "activation", "rotary")


@dataclass(frozen=True)
class Settings:
    """The entry "opmux" of vLLM's `additional_config`."""

    kinds: tuple[str, ...] = KINDS
    """The kinds of layers that are taken over; the others stay vLLM's."""
    asked: bool = False
    """Whether the kinds were named: then they are taken over even where vLLM's are faster."""
    exact: bool = False
    """Whether values are rounded where vLLM's own eager layers round, at some cost: then norms,
    activations and rotary embeddings are taken over only."""
    compiled: bool = False
    """Whether torch's compiler joins small layers into one loop, which no call is faster than."""

    @staticmethod
    def read(config: Any) -> Settings:
        """The settings of a `VllmConfig`; of none, the defaults."""
        given = getattr(config, "additional_config", None) or {}
        entry = given.get("opmux", {}) if isinstance(given, dict) else {}
        if not isinstance(entry, dict) or not set(entry) <= {"kinds", "exact"}:
            raise InvalidArgument(f"opmux: {entry!r} is not a table of 'kinds' and 'exact'")
        kinds = entry.get("kinds", KINDS)
        if isinstance(kinds, str) or not set(kinds) <= set(KINDS):
            raise InvalidArgument(f"opmux: kinds are {', '.join(KINDS)}, not {kinds!r}")
        exact = bool(entry.get("exact", False))
        return Settings(tuple(kinds), "kinds" in entry, exact, _is_compiled(config))

    @staticmethod
    def current() -> Settings:
        """Those of the engine whose model is being made."""
        return Settings.read(import_module("vllm.config").get_current_vllm_config_or_none())

    def reason_against(self, kind: str) -> str:
        """Why a kind of layers is left alone; empty if it is not."""
        if kind not in self.kinds:
            return "it was not asked for"
        if self.compiled and kind in _FUSED and not self.asked and not self.exact:
            return "the compiler fuses it with its neighbours, which is faster"
        return ""


def _is_compiled(config: Any) -> bool:
    compilation: Any = getattr(config, "compilation_config", None)
    return bool(getattr(compilation, "mode", 0)) and compilation.backend == "inductor"
