"""Functions that query and control the default runtime."""

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


def explain(
    op: str | _core.Operator | _core.Instance, /, *args: Any, **kwargs: Any
) -> _core.Explanation:
    """Returns the decision that a call with these arguments would make, with a reason for every
    candidate. Print it, or read its fields."""
    if isinstance(op, _core.Instance):
        return op.explain(*args, **kwargs)
    operator = default_runtime().op(op) if isinstance(op, str) else op
    try:
        return _core.explain(operator, *args, **kwargs)
    except InvalidArgument as refused:
        if refused.reason != "python.requires_grad":
            raise
    with sys.modules["torch"].no_grad():  # autograd does not change the decision
        return _core.explain(operator, *args, **kwargs)


def decide(op: str | _core.Operator, /, *args: Any, **kwargs: Any) -> str:
    """Makes and caches the decision for a call like this without running it. Returns the id of the
    chosen implementation; `lock` then includes the choice."""
    operator = default_runtime().op(op) if isinstance(op, str) else op
    return _core.decide(operator, *args, **kwargs)


def lock() -> _core.Lockfile:
    """Returns the decisions made so far outside of scopes, as a lockfile."""
    return default_runtime().lock()


def freeze(lock: _core.Lockfile | None = None) -> _core.Lockfile:
    """Freezes the runtime: registrations, policy changes and backend switches raise Frozen from now
    on, and calls run the implementations chosen so far, or those in `lock`. Returns the choices."""
    return default_runtime().freeze(lock)


def list_operators() -> list[_core.OperatorInfo]:
    """Returns every operator with its implementations; asks each backend whether it is
    available."""
    return default_runtime().list()


def stats() -> list[_core.CallStats]:
    """Returns the counters of every implementation that has been used."""
    return default_runtime().stats()


def health() -> _core.HealthReport:
    """Returns a health verdict for a health endpoint, with the reasons for it."""
    return default_runtime().health()


def on_breaker(function: Callable[[_core.BreakerEvent], object]) -> None:
    """Calls function(event) for each breaker state change, on the thread that caused the change."""
    default_runtime().on_breaker(function)


def force_breaker(implementation: str, what: Literal["open", "close", "isolate"]) -> None:
    """Opens, closes or isolates the breaker of an implementation by hand, for all of its calls."""
    default_runtime().force_breaker(implementation, what)


def process_state(pid: int, state_dir: str = "") -> _core.ProcessState:
    """Returns the state of a running process, read from the status file that it publishes when
    started with `OPMUX_STATE_PAGE=1`. `state_dir` is the OPMUX_STATE_DIR of that process, if it
    differs from this process's. Does not create a runtime. Raises NotFound if the process has ended
    or publishes no status file."""
    return _core.process_state(pid, state_dir)


def process_states(state_dir: str = "") -> list[_core.ProcessState]:
    """Returns the state of every running process of this user that publishes a status file, ordered
    by pid."""
    return _core.process_states(state_dir)


def recordings() -> _core.RecordState:
    """Returns where failed and diverging calls are recorded, and how many were."""
    return default_runtime().recordings()


def replay(
    path: str | os.PathLike[str], implementations: Sequence[str] = (), *, minimize: bool = False
) -> _core.ReplayReport:
    """Repeats the call of a replay file, with the implementation that was recorded or with others,
    and compares the outputs with the reference. Print the report, or read its fields."""
    return default_runtime().replay(os.fspath(path), list(implementations), minimize)


def load_plugin(path: str | os.PathLike[str]) -> _core.PluginInfo:
    """Loads the native plugin of one file into the default runtime. The path must be absolute.
    Raises an error with the reason if the file is refused."""
    return default_runtime().load_plugin(os.fspath(path))


def plugins() -> list[_core.PluginInfo | PythonPlugin]:
    """Returns every plugin that was found, and whether it was loaded or why not."""
    native: list[_core.PluginInfo | PythonPlugin] = [*default_runtime().plugins()]
    return native + list(_python_plugins)


def settings() -> list[_core.SettingInfo]:
    """Returns each effective setting and its origin."""
    return default_runtime().settings()


def tuning(*, check: bool = False) -> list[_core.TuningBundle]:
    """Returns the bundles of measured speeds that were found. With `check` it reads the rows of all
    operators first, so that the counts include operators that were not used yet."""
    runtime = default_runtime()
    if check:
        runtime.check_tuning()
    return runtime.tuning()


def reload_tuning() -> None:
    """Looks for bundles of measured speeds again, so that rows measured since the start count."""
    default_runtime().reload_tuning()


def write_state_page(path: str | os.PathLike[str]) -> None:
    """Writes the state of the default runtime to a file once, as a status file. Nothing updates the
    file later."""
    default_runtime().write_state_page(os.fspath(path))


def set_policy(policy: _core.Policy) -> None:
    """Sets the in-code policy of the whole runtime. Scopes may override it."""
    default_runtime().set_policy(policy)


def reset_policy() -> None:
    """Removes the policy that set_policy set."""
    default_runtime().reset_policy()


def set_rank(rank: int | None, tp_size: int | None) -> None:
    """States the place of this process among those that share a model, for the names `rank` and
    `tp_size` (number of processes that share its tensors) in conditions of rules. Effective from
    the next call; None: not stated. Wins over OPMUX_RANK and OPMUX_TP_SIZE."""
    default_runtime().set_rank(rank, tp_size)


def warm_up() -> None:
    """Loads the deferred plugins now, so that no call has to wait for it."""
    default_runtime().warm_up()


def policy_in_force() -> _core.Policy:
    """Returns the policy that set_policy set."""
    return default_runtime().policy()


def constant(tensor: Any) -> _core.Constant:
    """Wraps a tensor as a constant, so that implementations may keep a packed copy of it."""
    return default_runtime().constant(tensor)


def readers() -> list[tuple[str, str, str]]:
    """Returns the tensor types seen so far, and how each is read: "module", "exchange" or
    "protocol"."""
    return sorted(_core.readings())


def installed(*parts: str) -> str:
    """Returns a path inside the installed package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts)


def get_include() -> str:
    """Returns the folder with the headers, for plugins and C++ programs."""
    return installed("include")


def get_cmake_dir() -> str:
    """Returns the folder with the CMake package: `find_package(opmux HINTS ...)`."""
    return installed("lib", "cmake", "opmux")
