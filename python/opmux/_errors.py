"""The exceptions of opmux: one class per error code, so that `except` can distinguish them."""

from __future__ import annotations

from . import _core


class Error(Exception):
    """Base class of all opmux errors. `reason` is a stable reason code for programs."""

    code = "error"

    def __init__(self, message: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Declined(Error):
    """An implementation declined the call before it wrote anything. Raise it inside an
    implementation to decline a call."""

    code = "declined"


class InvalidArgument(Error, ValueError, TypeError):
    """The caller passed a wrong argument: the message names the argument and the expectation."""

    code = "invalid_argument"


class Failed(Error, RuntimeError):
    """An implementation failed and no fallback could run."""

    code = "failed"


class ResourceExhausted(Error, MemoryError):
    """Memory or workspace ran out."""

    code = "resource"


class DeviceLost(Error, RuntimeError):
    """A device failed in a way that this process cannot recover from."""

    code = "device_lost"


class NotFound(Error, LookupError):
    """No operator, argument, backend or implementation has that name."""

    code = "not_found"


class AlreadyExists(Error):
    """The name is already in use."""

    code = "already_exists"


class NoCandidate(Error, RuntimeError):
    """Policy, capabilities or health excluded every candidate; the message lists the reasons."""

    code = "no_candidate"


class OutsidePlan(Error, ValueError):
    """The arguments do not match those that the plan was bound for."""

    code = "outside_plan"


class Revoked(Error, RuntimeError):
    """The plan may no longer run: policy denies its implementation, the implementation was
    withdrawn, or its device was lost."""

    code = "revoked"


class Frozen(Error, RuntimeError):
    """The runtime is frozen and rejects changes."""

    code = "frozen"


class Unsupported(Error, NotImplementedError):
    """opmux does not support this operation, or not on this machine."""

    code = "unsupported"


class Unavailable(Error, RuntimeError):
    """The object exists but cannot be used now."""

    code = "unavailable"


class Unexpected(Error, AssertionError):
    """Raised by `expect` when a different implementation ran than expected."""

    code = "unexpected"


_CODES: dict[int, type[Error]] = {
    1: Declined,
    2: InvalidArgument,
    3: Failed,
    4: ResourceExhausted,
    5: DeviceLost,
    16: NotFound,
    17: AlreadyExists,
    18: NoCandidate,
    19: OutsidePlan,
    20: Revoked,
    21: Frozen,
    22: Unsupported,
    23: Unavailable,
}
for _number, _type in _CODES.items():
    _core.set_error_type(_number, _type)
