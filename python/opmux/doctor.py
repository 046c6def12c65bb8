"""Reports versions, settings, backends, tensor readers and plugins: `opmux doctor [--json]`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
from typing import Any

from . import _core, _information
from ._plugins import PythonPlugin

_PATHS = {
    "module": "read in place by the reader built for this torch",
    "exchange": "read through the DLPack C exchange API",
    "protocol": "read through __dlpack__",
}
_LIBRARIES = ("numpy", "torch", "jax", "cupy")


def _version_of(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {
        "opmux": _core.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    return found | {name: _version_of(name) for name in _LIBRARIES}


def _backends() -> list[dict[str, Any]]:
    """One entry per backend: how many implementations are available, and why the others are not."""
    found: dict[str, dict[str, Any]] = {}
    for operator in _information.list_operators():
        for one in operator.implementations:
            empty = {"name": one.backend, "implementations": 0, "available": 0, "reasons": []}
            entry = found.setdefault(one.backend, empty)
            entry["implementations"] += 1
            entry["available"] += one.available
            if one.reason and one.reason not in entry["reasons"]:
                entry["reasons"].append(one.reason)
    return [found[name] for name in sorted(found)]


def _meet(library: str) -> str | None:
    """Reads a small tensor of a library, so that its type gets a reader. Returns the reason if that
    fails, else None."""
    if importlib.util.find_spec(library) is None:
        return "not installed"
    try:
        module = importlib.import_module(library)
        empty = module.numpy.zeros if library == "jax" else module.zeros
        _information.constant(empty(4))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _readers() -> list[dict[str, Any]]:
    """How the tensors of each library are read. Imports the libraries."""
    missing = {library: _meet(library) for library in _LIBRARIES}
    types = _information.readers()
    found = [{"type": name, "path": path, "detail": text} for name, path, text in types]
    refused = [(name, why) for name, why in missing.items() if why is not None]
    return found + [{"type": name, "path": "none", "detail": why} for name, why in refused]


def _plugin(plugin: _core.PluginInfo | PythonPlugin) -> dict[str, Any]:
    native = isinstance(plugin, _core.PluginInfo)
    source = plugin.path if isinstance(plugin, _core.PluginInfo) else plugin.source
    return {
        "name": plugin.name or os.path.basename(source),  # a plugin that did not load has no name
        "kind": "native" if native else "python",
        "source": source,
        "loaded": plugin.loaded,
        "reason": plugin.reason,
    }


def examine() -> dict[str, Any]:
    """Returns the whole report as data."""
    settings = _information.settings()
    return {
        "versions": _versions(),
        "settings": [{"key": s.key, "value": s.value, "origin": s.origin} for s in settings],
        "backends": _backends(),
        "readers": _readers(),
        "plugins": [_plugin(plugin) for plugin in _information.plugins()],
    }


def healthy(found: dict[str, Any]) -> bool:
    """Returns whether every plugin that was found was loaded."""
    return all(plugin["loaded"] for plugin in found["plugins"])


def _backend_line(backend: dict[str, Any]) -> str:
    share = f"{backend['available']} of {backend['implementations']} implementations available"
    return f"{share}; {'; '.join(backend['reasons'])}" if backend["reasons"] else share


def _reader_line(reader: dict[str, Any]) -> str:
    words, detail = _PATHS.get(reader["path"], ""), reader["detail"]
    return "; ".join(word for word in (words, detail if detail not in words else "") if word)


def _plugin_line(plugin: dict[str, Any]) -> str:
    state = "loaded" if plugin["loaded"] else f"refused: {plugin['reason']}"
    return f"{plugin['kind']}, {state}  ({plugin['source']})"


def _section(title: str, rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [title, *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows), ""]


def as_text(found: dict[str, Any]) -> str:
    """Formats the report for a terminal."""
    versions = [(name, text or "not installed") for name, text in found["versions"].items()]
    settings = [(s["key"], f"{s['value']}  from {s['origin']}") for s in found["settings"]]
    backends = [(b["name"], _backend_line(b)) for b in found["backends"]]
    readers = [(r["type"], _reader_line(r)) for r in found["readers"]]
    plugins = [(p["name"], _plugin_line(p)) for p in found["plugins"]]
    lines = _section("versions", versions) + _section("settings", settings)
    lines += _section("backends", backends) + _section("readers", readers)
    return "\n".join(lines + _section("plugins", plugins)).rstrip("\n")


def main(arguments: list[str] | None = None) -> int:
    """Prints the report. Returns 0 if every plugin was loaded, else 1."""
    parser = argparse.ArgumentParser(prog="opmux doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.parse_args(arguments)
    found = examine()
    print(json.dumps(found, indent=2) if given.json else as_text(found))
    return 0 if healthy(found) else 1


if __name__ == "__main__":
    sys.exit(main())
