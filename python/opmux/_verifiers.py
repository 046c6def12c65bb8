"""The view of a call that a Python verifier gets. It exposes facts only, and opmux records those
that a verifier reads, so that calls with equal facts get equal answers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from . import _core
from ._ambient import call_watched

DTYPE, RANK, PRESENT, DIM, CONTIGUOUS, SCALAR, DEVICE = 1, 2, 3, 4, 5, 8, 9
AMBIENT, OUTSIDE = 10, 12
_DTYPES = {
    (2, 64): "f64", (2, 32): "f32", (2, 16): "f16", (4, 16): "bf16", (0, 64): "i64",
    (0, 32): "i32", (0, 16): "i16", (0, 8): "i8", (1, 8): "u8", (6, 8): "bool",
}  # fmt: skip


class TensorFacts:
    """The tensor facts that a verifier may read: `shape`, `dtype`, `ndim`, `device` and
    `is_contiguous()`."""

    def __init__(self, facts: Any, argument: _core.ArgumentInfo) -> None:
        self._facts, self._argument = facts, argument

    @property
    def dtype(self) -> str:
        packed = self._facts.get(DTYPE, self._argument.name) or 0
        return _DTYPES.get((packed & 255, packed >> 8 & 255), f"{packed & 255}.{packed >> 8 & 255}")

    @property
    def ndim(self) -> int:
        return int(self._facts.get(RANK, self._argument.name) or 0)

    def dim(self) -> int:
        return self.ndim

    @property
    def device(self) -> str:
        packed = self._facts.get(DEVICE, self._argument.name) or 0
        return "cpu" if packed & 65535 == 1 else f"device{packed & 65535}:{packed >> 16}"

    def is_contiguous(self) -> bool:
        return bool(self._facts.get(CONTIGUOUS, self._argument.name))

    @property
    def shape(self) -> ShapeFacts:
        return ShapeFacts(self._facts, self._argument, self.ndim)

    def size(self, dim: int) -> int:
        return self.shape[dim]


class ShapeFacts:
    """A shape. A verifier may read its named dimensions, and those of `...` only as a product."""

    def __init__(self, facts: Any, argument: _core.ArgumentInfo, rank: int) -> None:
        self._facts, self._argument, self._rank = facts, argument, rank

    def __len__(self) -> int:
        return self._rank

    def __getitem__(self, index: int) -> int:
        named = [dim for dim in self._argument.dims if dim != "..."]
        at = index - self._rank if index >= 0 else index
        if not -self._rank <= at < 0:
            raise IndexError(f"{self._argument.name} has {self._rank} dimensions")
        if -at > len(named):
            raise LookupError(
                f"dimension {index} of {self._argument.name} has no name in the schema: a verifier "
                "may read named dimensions, and `.rows` for the product of the others"
            )
        name = named[at]
        return int(name) if name.isdigit() else int(self._facts.get(DIM, name))

    @property
    def rows(self) -> int:
        return int(self._facts.get(DIM, "rows"))


class _Reads:
    """Passes what a verifier reads besides its arguments to the engine."""

    def __init__(self, facts: _core.FactsView) -> None:
        self._facts = facts

    def ambient(self, name: str) -> bool:
        return bool(self._facts.get(AMBIENT, name))

    def outside(self, what: str) -> None:
        self._facts.get(OUTSIDE, what)


class Verifier:
    """Adapts a Python verifier to the extension, where None accepts and a str refuses."""

    def __init__(self, operator: _core.Operator, check: Callable[..., Any]) -> None:
        self._inputs = [a for a in _core.arguments(operator) if not a.output]
        self._check = check

    def __call__(self, facts: Any) -> str | None:
        shown = [self._value(facts, argument) for argument in self._inputs]
        answer = call_watched(_Reads(facts), self._check, shown, {})
        if answer is True:
            return None
        if isinstance(answer, tuple) and len(answer) == 2:
            if answer[0] is True and answer[1] is None:
                return None
            if answer[0] is False and isinstance(answer[1], str):
                return answer[1]
        if isinstance(answer, str):
            return answer
        raise TypeError(f"a verifier must return True or a str with the reason, not {answer!r}")

    @staticmethod
    def _value(facts: Any, argument: _core.ArgumentInfo) -> Any:
        if argument.type == "Tensor":
            present = facts.get(PRESENT, argument.name)
            return TensorFacts(facts, argument) if present else None
        value = facts.get(SCALAR, argument.name)
        if value is None:
            return None
        if argument.type == "bool":
            return bool(value)
        if argument.type == "float":
            return struct.unpack("d", struct.pack("q", value))[0]
        return argument.words[value] if argument.words else value
