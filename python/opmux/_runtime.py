"""The default runtime of the package, created when a function first needs it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from typing import Any, NoReturn

from . import _core
from ._errors import InvalidArgument, NotFound, Unsupported

_lock = threading.RLock()
_default: _core.Runtime | None = None
_making: _core.Runtime | None = None  # set while plugins load, because they may ask for it
_beside_torch = False
_keeps_page = False


def _tell(level: str, code: str, op: str, impl: str, text: str) -> None:
    import logging  # imported lazily, when the first event is logged

    log = logging.getLogger("opmux")
    levels = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
    number = levels.get(level, logging.ERROR)
    if log.isEnabledFor(number):
        extra = {"opmux_code": code, "opmux_op": op, "opmux_impl": impl}
        log.log(number, "%s: %s", code, text, extra=extra)


_with_journal: weakref.WeakSet[_core.Runtime] = weakref.WeakSet()
_plain_exit = os._exit


def _remove_journal() -> None:
    """Removes the crash journal before an end of the process that the library does not see: the
    implementations that other threads are running would be suspected of having caused it."""
    for runtime in list(_with_journal):
        with contextlib.suppress(OSError):
            os.unlink(runtime.crash_journal().path)


def _exit(status: int) -> NoReturn:
    """Replaces os._exit() in processes with a crash journal."""
    _remove_journal()
    _plain_exit(status)


def _at_exit() -> None:
    """After a KeyboardInterrupt, the interpreter ends the process with a signal."""
    if issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt):
        _remove_journal()


def create_runtime(**options: Any) -> _core.Runtime:
    """Creates a separate runtime whose events go to the logger "opmux"."""
    options.setdefault("sink", _tell)
    made = _core.Runtime(**options)
    if made.crash_journal().on:
        _with_journal.add(made)
        if os._exit is _plain_exit:
            os._exit = _exit
            atexit.register(_at_exit)
    return made


_switches: dict[str, bool] = {}
_BOOLEANS = {"0": False, "false": False, "off": False, "1": True, "true": True, "on": True}
families: dict[str, Any] = {}  # dispatchable functions without a schema, by name


def _frozen_later() -> _core.SourceOptions:
    """Defers freezing in mode static until Python plugins and functions are registered."""
    sources = _core.SourceOptions()
    sources.freeze_at_start = False
    return sources


def _create_default() -> _core.Runtime:
    """Creates the default runtime. OPMUX_BACKEND_* variables that name an unknown backend are kept,
    because a Python implementation may register that backend later."""
    _switches.clear()
    state = _core.StateOptions(
        state_page=_keeps_page and not os.environ.get("OPMUX_STATE_PAGE", "")
    )
    try:
        return create_runtime(sources=_frozen_later(), state=state)
    except InvalidArgument as error:
        if error.reason != "environment.backend":
            raise
    prefix = "OPMUX_BACKEND_"
    own = {name: value for name, value in os.environ.items() if name.startswith("OPMUX_")}
    kept = [(n, v) for n, v in own.items() if not n.startswith(prefix)]
    made = create_runtime(environment=kept, sources=_frozen_later(), state=state)
    for name, value in own.items():
        if name.startswith(prefix) and value:
            if value not in _BOOLEANS:
                raise InvalidArgument(
                    f"{name} must be on or off, not '{value}'", "environment.value"
                )
            _switches[name[len(prefix) :].lower()] = _BOOLEANS[value]
    for backend in list(_switches):
        if not apply_switch(made, backend):
            _tell("warning", "environment.backend", "", "", f"backend '{backend}' is not known yet")
    return made


def apply_switch(runtime: _core.Runtime, backend: str) -> bool:
    """Enables or disables a backend as the environment says; returns False if it is unknown."""
    if backend not in _switches:
        return True
    try:
        runtime.enable_backend(backend, _switches[backend])
    except NotFound:
        return False
    return True


def share_threads_with_torch() -> None:
    """Makes the default runtime run on torch's OpenMP threads, now or when it is created.

    Two separate thread pools would compete for the same cores.
    """
    global _beside_torch
    with _lock:
        _beside_torch = True
        if _default is not None:
            _use_openmp(_default)


def keep_state_page() -> None:
    """Makes the default runtime publish a status file when it is created, unless OPMUX_STATE_PAGE
    is set."""
    global _keeps_page
    _keeps_page = True


def _use_openmp(runtime: _core.Runtime) -> None:
    with contextlib.suppress(Unsupported):  # torch has no OpenMP, or opmux does not know its OpenMP
        runtime.use_openmp()


def existing_runtime() -> _core.Runtime | None:
    """Returns the default runtime, or None if it has not been created."""
    return _default


def default_runtime() -> _core.Runtime:
    """Returns the runtime behind `opmux.ops` and the functions of this module."""
    if _default is None:
        with _lock:
            return _default or _making or _make_default()
    return _default


def _make_default() -> _core.Runtime:
    global _default, _making
    from . import _plugins

    _making = _create_default()
    if _beside_torch:
        _use_openmp(_making)
    try:
        _plugins.load(_making)
        for family in list(families.values()):
            family.attach(_making)
        if any(s.key == "mode" and s.value == "static" for s in _making.settings()):
            _making.freeze()
        _default = _making
    finally:
        _making = None
    return _default


def reset_default_runtime() -> None:
    """For tests: drops the default runtime, so that the next call creates a new one. Operator
    objects that you hold keep using the old runtime."""
    global _default
    with _lock:
        _default = None
        _core.forget_decisions()
        from . import _ops

        _ops.ops.__dict__.clear()
