"""What a runtime tells about itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from . import _core, _explanation_view
from ._errors import InvalidArgument
from ._plugins import PythonPlugin
from ._plugins import found as _python_plugins
from ._runtime import default_runtime

_explanation_view.install(_core.Explanation)


def explain(op: str | _core.Operator, /, *args: Any, **kwargs: Any) -> _core.Explanation:
    """The decision that a call with these arguments would make, with a reason for every
    candidate. Print it, or read its fields."""
    operator = default_runtime().op(op) if isinstance(op, str) else op
    try:
        return _core.explain(operator, *args, **kwargs)
    except InvalidArgument as refused:
        if refused.reason != "python.requires_grad":
            raise
    with sys.modules["torch"].no_grad():  # who watches does not change the decision
        return _core.explain(operator, *args, **kwargs)


def decide(op: str | _core.Operator, /, *args: Any, **kwargs: Any) -> str:
    """Decides for a call like this as its first call would, without running it; returns the
    implementation, which `lock` then tells of."""
    operator = default_runtime().op(op) if isinstance(op, str) else op
    return _core.decide(operator, *args, **kwargs)


def lock() -> _core.Lockfile:
    """The choices that were made so far outside of scopes: what a lockfile has."""
    return default_runtime().lock()


def freeze(lock: _core.Lockfile | None = None) -> _core.Lockfile:
    """From now on nothing changes any more: registrations, policies and switches raise Frozen, and
    calls run what was chosen so far, or what `lock` says. Returns the choices."""
    return default_runtime().freeze(lock)


def list_operators() -> list[_core.OperatorInfo]:
    """Every operator and implementation; asks each backend whether it is available."""
    return default_runtime().list()


def stats() -> list[_core.CallStats]:
    """Counters of every implementation that was met."""
    return default_runtime().stats()


def health() -> _core.HealthReport:
    """How everything is doing: a verdict for a health endpoint, and what it rests on."""
    return default_runtime().health()


def on_breaker(function: Callable[[_core.BreakerEvent], object]) -> None:
    """Tells function(event) of each breaker that changes its state, from the thread that saw it."""
    default_runtime().on_breaker(function)


def force_breaker(implementation: str, what: Literal["open", "close", "isolate"]) -> None:
    """Opens, closes or isolates an implementation by hand, for all of its calls."""
    default_runtime().force_breaker(implementation, what)


def process_state(pid: int, state_dir: str = "") -> _core.ProcessState:
    """What a running process does, by the state page that it keeps (`OPMUX_STATE_PAGE=1`).
    `state_dir` is the OPMUX_STATE_DIR that it was started with, if not this process's own. Makes
    no runtime. Raises NotFound if the process has ended or keeps no page."""
    return _core.process_state(pid, state_dir)


def process_states(state_dir: str = "") -> list[_core.ProcessState]:
    """Every running process of this user that keeps a state page, by pid."""
    return _core.process_states(state_dir)


def recordings() -> _core.RecordState:
    """Where calls that went wrong are recorded, and how many were."""
    return default_runtime().recordings()


def replay(
    path: str | os.PathLike[str], implementations: Sequence[str] = (), *, minimize: bool = False
) -> _core.ReplayReport:
    """Makes the call of a replay file again, with the implementation that it went wrong with or
    with others, and compares with the reference. Print it, or read its fields."""
    return default_runtime().replay(os.fspath(path), list(implementations), minimize)


def plugins() -> list[_core.PluginInfo | PythonPlugin]:
    """What was found where plugins are looked for, and what became of it."""
    native: list[_core.PluginInfo | PythonPlugin] = [*default_runtime().plugins()]
    return native + list(_python_plugins)


def settings() -> list[_core.SettingInfo]:
    """Each effective setting and where it came from."""
    return default_runtime().settings()


def set_policy(policy: _core.Policy) -> None:
    """Policy in code for the whole runtime, until a scope says otherwise."""
    default_runtime().set_policy(policy)


def reset_policy() -> None:
    """Takes back what set_policy set."""
    default_runtime().reset_policy()


def warm_up() -> None:
    """Loads the plugins that wait until a decision could use them, so that no call does."""
    default_runtime().warm_up()


def policy_in_force() -> _core.Policy:
    """What set_policy set."""
    return default_runtime().policy()


def constant(tensor: Any) -> _core.Constant:
    """Gives a tensor an owner, so that implementations may pack it once."""
    return default_runtime().constant(tensor)


def readers() -> list[tuple[str, str, str]]:
    """The tensor types that were met, and how each is read: "module", "exchange" or "protocol"."""
    return sorted(_core.readings())


def installed(*parts: str) -> str:
    """A path inside the installed package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts)


def get_include() -> str:
    """The folder with the headers, for plugins and C++ programs."""
    return installed("include")


def get_cmake_dir() -> str:
    """The folder with the CMake package: `find_package(opmux HINTS ...)`."""
    return installed("lib", "cmake", "opmux")
