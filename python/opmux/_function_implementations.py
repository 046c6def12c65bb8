"""Python functions as implementations of dispatchable functions that have no schema."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from . import _core
from ._ambient import Reads, call_watched

if TYPE_CHECKING:
    from ._dispatch_family import Family

P = ParamSpec("P")
R = TypeVar("R")
# OPMUX_IMPL_*, by the keyword argument that sets them.
FLAGS = {"serial": 1, "atomic_outputs": 2, "deterministic": 4, "batch_invariant": 8,
         "capture_safe": 16}  # fmt: skip


class Refusal(NamedTuple):
    """The reason why a candidate does not accept a call; `code` is a stable reason code."""

    code: str
    reason: str


def _reason_in(answer: Any) -> str | None:
    """Returns the reason given by a verifier that refuses; None if it accepts."""
    if answer is True or (isinstance(answer, tuple) and answer == (True, None)):
        return None
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] is False:
        answer = answer[1]
    if isinstance(answer, str):
        return answer
    raise TypeError(f"a verifier must return True or a str with the reason, not {answer!r}")


class FunctionImplementation(Generic[P, R]):
    """One implementation of a dispatchable function. Calling the object calls the decorated
    function directly, without dispatch."""

    def __init__(
        self,
        family: Family,
        function: Callable[P, R],
        id: str,
        *,
        kind: str,
        vendor: str,
        priority: int,
        caps: dict[str, Any],
        flags: int,
        available: Callable[[], Any] | None,
        default_enable: bool | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.id, self.kind, self.vendor, self.priority = id, kind, vendor, priority
        self._default_enable = default_enable
        self.function = function
        self.refused = 0
        self._caps, self._flags = caps, flags
        self._family, self._available = family, available
        self._check: Callable[..., Any] | None = None
        self._unavailable: Refusal | None = None
        self._registration: _core.Registration | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def atomic_outputs(self) -> bool:
        return bool(self._flags & FLAGS["atomic_outputs"])

    @property
    def provider(self) -> str:
        return self.id.partition("/")[2].partition(".")[0]

    def verifier(self, check: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates a function that takes the call's arguments. It returns `True` or `(True, None)`
        to accept, or a str or `(False, str)` to refuse with that reason. Any other result, and any
        exception, refuses the call as `verify.broken`. The decision is cached for calls that agree
        in the facts that the verifier read."""
        self._check = check
        self._family.renew(self)
        return check

    @property
    def has_verifier(self) -> bool:
        return self._check is not None

    def withdraw(self) -> None:
        """Removes this implementation from the function."""
        self.detach()
        self._family.remove(self)

    def attach(self, runtime: _core.Runtime) -> None:
        self._registration = _core.implement_function(
            runtime, self.id, self.kind, self.vendor, self.priority, self._caps, self._flags,
            self._default_enable,
        )  # fmt: skip

    def detach(self) -> None:
        registration, self._registration = self._registration, None
        if registration is not None:
            registration.withdraw()

    def ask_available(self) -> Refusal | None:
        """Returns why the implementation is unavailable here, or None. Calls `available` once."""
        if self._available is not None:
            asked, self._available = self._available, None
            self._unavailable = why_unavailable(asked)
        return self._unavailable

    def verify(self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads) -> Refusal | None:
        """Returns why the verifier refuses these arguments, or None if it accepts them."""
        if self._check is None:
            return None
        check = self._check
        return _ask(
            "verify.refused", "verify.broken", lambda: call_watched(reads, check, args, kwargs)
        )

    def __repr__(self) -> str:
        return f"<implementation {self.id}>"


def why_unavailable(available: Callable[[], Any]) -> Refusal | None:
    """Returns why an implementation cannot be used here, or None: `available` returns True, or a
    str or False if it cannot, and an exception means that it cannot."""
    code = "backend.unavailable"
    return _ask(code, code, lambda: available() or "available() is false")


def _ask(code: str, broken: str, ask: Callable[[], Any]) -> Refusal | None:
    try:
        reason = _reason_in(ask())
    except Exception as error:
        return Refusal(broken, f"{type(error).__name__}: {error}")
    return None if reason is None else Refusal(code, reason)
