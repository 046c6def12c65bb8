"""What an engine's configuration says about opmux."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .._errors import InvalidArgument

KINDS = ("norm", "activation", "rotary", "linear", "attention", "moe")


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
        return Settings(tuple(kinds), "kinds" in entry, bool(entry.get("exact", False)))

    @staticmethod
    def current() -> Settings:
        """Those of the engine whose model is being made."""
        return Settings.read(import_module("vllm.config").get_current_vllm_config_or_none())

    def reason_against(self, kind: str) -> str:
        """Why a kind of layers is left alone; empty if it is not."""
        return "" if kind in self.kinds else "it was not asked for"
