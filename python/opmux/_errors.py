"""The exceptions of opmux: one class per code, so that they can be told apart by `except`."""

from __future__ import annotations

from . import _core


class Error(Exception):
    """Something that opmux refused or that failed. `reason` is a stable word for programs."""

    code = "error"

    def __init__(self, message: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Declined(Error):
    """An implementation refused before it touched anything. Raise it in one to decline a call."""

    code = "declined"


class InvalidArgument(Error, ValueError, TypeError):
    """The caller's fault: the message names the argument and what was expected of it."""

    code = "invalid_argument"


class Failed(Error, RuntimeError):
    """An implementation went wrong and nothing could stand in for it."""

    code = "failed"


class ResourceExhausted(Error, MemoryError):
    """Memory or workspace ran out."""

    code = "resource"


class DeviceLost(Error, RuntimeError):
    """A device is in a state from which this process cannot bring it back."""

    code = "device_lost"


class NotFound(Error, LookupError):
    """There is no operator, argument, backend or implementation of that name."""

    code = "not_found"


class AlreadyExists(Error):
    """The name is taken."""

    code = "already_exists"


class NoCandidate(Error, RuntimeError):
    """Policy, capabilities or health left nothing to run; the message lists every candidate."""

    code = "no_candidate"


class OutsidePlan(Error, ValueError):
    """The arguments are not those that the plan was bound for."""

    code = "outside_plan"


class Revoked(Error, RuntimeError):
    """The plan may not run any more: denied, withdrawn, or its device lost."""

    code = "revoked"


class Frozen(Error, RuntimeError):
    """The runtime takes no more changes."""

    code = "frozen"


class Unsupported(Error, NotImplementedError):
    """opmux cannot do this, here or at all."""

    code = "unsupported"


class Unavailable(Error, RuntimeError):
    """It exists, and cannot be used now."""

    code = "unavailable"


class Unexpected(Error, AssertionError):
    """Raised by `expect` when another implementation ran than the one that was expected."""

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
