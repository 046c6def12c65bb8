"""Python plugins: found by entry point or by OPMUX_PYTHON_PLUGINS; a bad one harms nobody else."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import _core

GROUP = "opmux.plugins"
_log = logging.getLogger("opmux")


@dataclass(frozen=True)
class PythonPlugin:
    """A plugin that was found, and what became of it."""

    name: str
    source: str
    loaded: bool
    reason: str = ""


found: list[PythonPlugin] = []


def _entry_points() -> Iterator[tuple[str, str, Callable[[], object]]]:
    for entry in importlib.metadata.entry_points(group=GROUP):
        yield entry.name, "entry point", entry.load


def _modules() -> Iterator[tuple[str, str, Callable[[], object]]]:
    for name in os.environ.get("OPMUX_PYTHON_PLUGINS", "").split(","):
        if name.strip():
            yield name.strip(), "OPMUX_PYTHON_PLUGINS", lambda n=name.strip(): (
                importlib.import_module(n)
            )


def _register(runtime: _core.Runtime, load: Callable[[], object]) -> None:
    plugin = load()
    register = plugin if callable(plugin) else getattr(plugin, "register", None)
    if not callable(register):
        raise TypeError("it has no function register(runtime)")
    register(runtime)


def load(runtime: _core.Runtime) -> None:
    """Loads every plugin that is found; called once for the default runtime."""
    found.clear()
    for name, source, loader in [*_entry_points(), *_modules()]:
        try:
            _register(runtime, loader)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            _log.warning("plugin.refused: %s (%s): %s", name, source, reason)
            found.append(PythonPlugin(name, source, False, reason))
        else:
            found.append(PythonPlugin(name, source, True))
