"""opmux: routes each call of an operator to the best implementation that may take it.

    import torch, opmux
    y = opmux.ops.rms_norm(x, weight, eps=1e-6)      # or out=y, which is faster
    print(opmux.explain("rms_norm", x, weight))      # what runs, and why
    with opmux.require("reference"):                 # for this block, in this task
        y = opmux.ops.rms_norm(x, weight)
"""

from __future__ import annotations

from . import _allocate as _allocate
from ._core import (
    Boost,
    CallStats,
    Candidate,
    Condition,
    Constant,
    Explanation,
    ImplementationInfo,
    Operator,
    OperatorInfo,
    Plan,
    PluginInfo,
    Policy,
    Registration,
    Rule,
    Runtime,
    SettingInfo,
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

__all__ = [name for name in dir() if not name.startswith("_")] + ["__version__"]
