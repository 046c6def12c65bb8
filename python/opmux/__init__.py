"""opmux: routes each call of an operator to the best implementation that may take it.

    import torch, opmux
    y = opmux.ops.rms_norm(x, weight, eps=1e-6)      # or out=y, which is faster
    print(opmux.explain("rms_norm", x, weight))      # what runs, and why
    with opmux.require("reference"):                 # for this block, in this task
        y = opmux.ops.rms_norm(x, weight)

All functions of this module use one runtime, that of `default_runtime()`, unless given another.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from . import _allocate as _allocate
from ._core import (
    Boost,
    CallStats,
    Candidate,
    Condition,
    Constant,
    CrashJournalState,
    DecisionChange,
    Explanation,
    ImplementationInfo,
    Operator,
    OperatorInfo,
    Plan,
    PluginInfo,
    PluginOptions,
    Policy,
    PolicyChange,
    PolicyCheck,
    PolicyFinding,
    PolicyState,
    Quarantine,
    QuarantineEntry,
    Registration,
    Rule,
    Runtime,
    SettingInfo,
    SourceOptions,
    StateOptions,
    SuspectedEnd,
    __version__,
)
from ._dispatchable import dispatchable
from ._errors import (
    AlreadyExists,
    Declined,
    DeviceLost,
    Error,
    Failed,
    Frozen,
    InvalidArgument,
    NoCandidate,
    NotFound,
    OutsidePlan,
    ResourceExhausted,
    Revoked,
    Unavailable,
    Unexpected,
    Unsupported,
)
from ._implementations import PythonImplementation, define, implementation
from ._information import (
    constant,
    explain,
    get_cmake_dir,
    get_include,
    list_operators,
    plugins,
    policy_in_force,
    readers,
    reset_policy,
    set_policy,
    settings,
    stats,
    warm_up,
)
from ._ops import bind, op, ops
from ._points import Point, point
from ._runtime import create_runtime, default_runtime, reset_default_runtime
from ._scopes import (
    Report,
    Reports,
    allow_vendors,
    deny,
    deny_vendors,
    expect,
    options,
    policy,
    policy_scope,
    prefer,
    report,
    require,
    rule,
    scope,
    strict,
    thread_scope,
)

__all__ = [
    "__version__",
    "allow_vendors",
    "AlreadyExists",
    "bind",
    "Boost",
    "CallStats",
    "Candidate",
    "Condition",
    "constant",
    "Constant",
    "CrashJournalState",
    "create_runtime",
    "DecisionChange",
    "Declined",
    "default_runtime",
    "define",
    "deny",
    "deny_vendors",
    "DeviceLost",
    "dispatchable",
    "Error",
    "expect",
    "explain",
    "Explanation",
    "Failed",
    "Frozen",
    "get_cmake_dir",
    "get_include",
    "implementation",
    "ImplementationInfo",
    "InvalidArgument",
    "list_operators",
    "NoCandidate",
    "NotFound",
    "op",
    "Operator",
    "OperatorInfo",
    "ops",
    "options",
    "OutsidePlan",
    "Plan",
    "PluginInfo",
    "PluginOptions",
    "plugins",
    "point",
    "Point",
    "Policy",
    "policy",
    "policy_in_force",
    "policy_scope",
    "PolicyChange",
    "PolicyCheck",
    "PolicyFinding",
    "PolicyState",
    "prefer",
    "PythonImplementation",
    "Quarantine",
    "QuarantineEntry",
    "readers",
    "Registration",
    "Report",
    "report",
    "Reports",
    "require",
    "reset_default_runtime",
    "reset_policy",
    "ResourceExhausted",
    "Revoked",
    "rule",
    "Rule",
    "Runtime",
    "scope",
    "set_policy",
    "SettingInfo",
    "settings",
    "SourceOptions",
    "StateOptions",
    "stats",
    "strict",
    "SuspectedEnd",
    "thread_scope",
    "Unavailable",
    "Unexpected",
    "Unsupported",
    "warm_up",
]


def __getattr__(name: str) -> _Any:
    """`opmux.torch` and the like, which are imported when they are asked for."""
    if name in ("torch", "torch_backend", "transformers", "vllm"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
