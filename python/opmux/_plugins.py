"""Python plugins, found by entry point or OPMUX_PYTHON_PLUGINS. A plugin that fails to load is
logged and skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from . import _core

GROUP = "opmux.plugins"


class PythonPlugin(NamedTuple):
    """A plugin that was found, and whether it was loaded or why not."""

    name: str
    source: str
    loaded: bool
    reason: str = ""


found: list[PythonPlugin] = []


def _entry_points() -> Iterator[tuple[str, str, Callable[[], object]]]:
    import importlib.metadata  # imported lazily: it takes longer to import than all of opmux

    for entry in importlib.metadata.entry_points(group=GROUP):
        yield entry.name, "entry point", entry.load


def _modules() -> Iterator[tuple[str, str, Callable[[], object]]]:
    import functools
    import importlib

    for word in os.environ.get("OPMUX_PYTHON_PLUGINS", "").split(","):
        if name := word.strip():
            yield name, "OPMUX_PYTHON_PLUGINS", functools.partial(importlib.import_module, name)


def _register(runtime: _core.Runtime, load: Callable[[], object], must_register: bool) -> None:
    plugin = load()
    register = plugin if callable(plugin) else getattr(plugin, "register", None)
    if callable(register):
        register(runtime)
    elif must_register:
        raise TypeError("the plugin has no function register(runtime)")


def _load_one(
    runtime: _core.Runtime,
    name: str,
    source: str,
    loader: Callable[[], object],
    must_register: bool = True,
) -> None:
    try:
        _register(runtime, loader, must_register)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        _warn("plugin.refused: %s (%s): %s", name, source, reason)
        found.append(PythonPlugin(name, source, False, reason))
    else:
        found.append(PythonPlugin(name, source, True))


def load_for(runtime: _core.Runtime, name: str, modules: Sequence[str]) -> None:
    """Loads the plugins of one dispatchable function at its first call: the entry points of the
    group `opmux.plugins.NAME` and the modules listed in `backends=`."""
    import functools
    import importlib
    import importlib.metadata

    for entry in importlib.metadata.entry_points(group=f"{GROUP}.{name}"):
        _load_one(runtime, entry.name, "entry point", entry.load, must_register=False)
    for module in modules:
        loader = functools.partial(importlib.import_module, module)
        _load_one(runtime, module, f"backends of {name}", loader, must_register=False)


def _warn(form: str, *words: str) -> None:
    import logging

    logging.getLogger("opmux").warning(form, *words)


def load(runtime: _core.Runtime) -> None:
    """Loads every plugin that is found. Called once for each default runtime."""
    found.clear()
    for name, source, loader in [*_entry_points(), *_modules()]:
        _load_one(runtime, name, source, loader)
