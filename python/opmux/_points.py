"""Specialization points: typed questions in shared code that a backend may answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from ._runtime import default_runtime


class Point:
    """A typed question such as `gemm.tile_n(Device) -> int`. A device is a pair (type, id)."""

    def __init__(self, signature: str, runtime: _core.Runtime | None = None) -> None:
        self.signature = signature
        self._given = runtime
        _core.declare_point(self._runtime, signature)

    @property
    def _runtime(self) -> _core.Runtime:
        return self._given or default_runtime()

    def ask(self, *args: Any) -> Any:
        """Returns the answer, or None if no backend answers. 0 and False are valid answers."""
        answer = _core.ask_point(self._runtime, self.signature, *args)
        return None if answer is None else answer[0]

    def ask_or(self, otherwise: Callable[..., Any], *args: Any) -> Any:
        """Returns the answer, or `otherwise(*args)` if no backend answers."""
        answer = _core.ask_point(self._runtime, self.signature, *args)
        return otherwise(*args) if answer is None else answer[0]

    def answer(self, backend: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorates a function that answers for a backend; returning None means no answer."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            registration = _core.answer_point(self._runtime, self.signature, backend, function)
            registration.keep()
            return function

        return decorate

    def explain(self, *args: Any) -> _core.PointInfo:
        """Returns the backends in the order in which they are asked, and the answer if arguments
        are given."""
        return _core.explain_point(self._runtime, self.signature, *args)

    def __repr__(self) -> str:
        return f"<point {self.signature}>"


def point(signature: str) -> Point:
    """Declares a specialization point of the default runtime."""
    return Point(signature)


def points(runtime: _core.Runtime | None = None) -> list[_core.PointInfo]:
    """Returns all points that code declared or that a plugin answers, sorted by name."""
    return _core.list_points(runtime or default_runtime())
