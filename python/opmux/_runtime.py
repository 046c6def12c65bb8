"""The runtime that the module's own functions use, made when the first of them needs it."""

from __future__ import annotations

import threading
from typing import Any

from . import _core

_lock = threading.RLock()
_default: _core.Runtime | None = None


def _tell(level: str, code: str, op: str, impl: str, text: str) -> None:
    import logging  # not before there is something to tell

    log = logging.getLogger("opmux")
    levels = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
    number = levels.get(level, logging.ERROR)
    if log.isEnabledFor(number):
        extra = {"opmux_code": code, "opmux_op": op, "opmux_impl": impl}
        log.log(number, "%s: %s", code, text, extra=extra)


def create_runtime(**options: Any) -> _core.Runtime:
    """A runtime of its own, whose events go to the logger "opmux"."""
    options.setdefault("sink", _tell)
    return _core.Runtime(**options)


def default_runtime() -> _core.Runtime:
    """The runtime behind `opmux.ops` and the functions of this module."""
    global _default
    if _default is None:
        with _lock:
            if _default is None:
                made = create_runtime()
                from . import _plugins

                _plugins.load(made)
                _default = made
    return _default


def reset_default_runtime() -> None:
    """For tests: the next call makes a new one. Operators that are held keep the old one."""
    global _default
    with _lock:
        _default = None
        from . import _ops

        _ops.ops.__dict__.clear()
