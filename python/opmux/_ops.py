"""`opmux.ops`: every operator as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from . import _core
from ._errors import NotFound
from ._runtime import default_runtime

if TYPE_CHECKING:
    from ._standard_operators import StandardOperators

listeners: list[Callable[[str, Any], None]] = []
"""Called as listener(name, function) when `ops` looks up an operator for the first time."""


class _Namespace:
    """Operators as attributes; the operator `vendor.name` is `ops.vendor.name`."""

    def __init__(self, prefix: str = "") -> None:
        self.__dict__["_prefix"] = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self.__dict__.get("_prefix", "") + name
        try:
            found: Any = default_runtime().op(full).function
        except NotFound as missing:
            if not self._is_vendor(full):
                raise AttributeError(str(missing)) from None
            found = _Namespace(full + ".")
        self.__dict__[name] = found
        for listener in listeners:
            listener(full, found)
        return found

    @staticmethod
    def _is_vendor(name: str) -> bool:
        return any(info.name.startswith(name + ".") for info in default_runtime().list())

    def __dir__(self) -> list[str]:
        prefix = self.__dict__.get("_prefix", "")
        names = [info.name for info in default_runtime().list()]
        return sorted({n[len(prefix) :].partition(".")[0] for n in names if n.startswith(prefix)})

    def __repr__(self) -> str:
        return f"<opmux.ops: {len(dir(self))} operators>"


ops = cast("StandardOperators", _Namespace())


def function_of(name: str) -> Any:
    """Returns the function that `ops` caches for an operator; the same object each time."""
    found: Any = ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def op(name: str) -> _core.Operator:
    """Returns an operator as an object: callable like `ops.name`, with `bind`, `schema` and
    `signature`."""
    return default_runtime().op(name)


def bind(name: str, *args: Any, **kwargs: Any) -> _core.Plan:
    """Decides once for arguments like these. Calls of the returned plan skip the lookup."""
    return op(name).bind(*args, **kwargs)


def instance(name: str, /, **fixed: Any) -> _core.Instance:
    """Fixes arguments of an operator by name, such as the weight and the options of one layer.
    Calls of the returned object pass the other arguments, and implementations keep state in it."""
    return op(name).instance(**fixed)
