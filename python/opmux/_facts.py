"""Proxies for the arguments that the verifiers of a dispatchable function see. A proxy records
which facts of its argument a verifier reads.

A cached decision applies to every later call with the same recorded facts. If a verifier reads
something that cannot be recorded, the decision is not cached.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ._ambient import NAMES, bits_of

(TYPE, VALUE, DTYPE, RANK, DIM, CONTIGUOUS, GRAD, DEVICE, STRIDE, ATTRIBUTE, LENGTH,
 SAME) = range(12)  # fmt: skip
_WORDS = ("type", "value", "dtype", "rank", "dim", "contiguous", "requires_grad", "device",
          "stride", "", "length")  # fmt: skip

Question = tuple[int, tuple[int, ...], int, int, str | None]


class Recorder:
    """The facts that the verifiers of one call read, in the order in which they were read."""

    def __init__(self, names: Sequence[str], ambient: int = 0) -> None:
        self._names = list(names)
        self._noted: dict[Question, None] = {}
        self._ambient = ambient
        self.ambient_read = 0  # bit mask
        self.outside_reads: dict[str, None] = {}  # reads of things that are not facts
        self.complete = True

    def name_more(self, positional: int, named: Iterable[str]) -> None:
        """Sets the names of this call's arguments, for `words`."""
        more = [f"args[{i}]" for i in range(len(self._names), positional)]
        self._names = [*self._names[:positional], *more, *named]

    def note(self, place: Place, kind: int, index: int = 0, name: str | None = None) -> None:
        self._noted.setdefault((place.argument, place.path, kind, index, name))

    def ambient(self, name: str) -> bool:
        """Records that an ambient fact was read, and returns it."""
        bit = bits_of([name])
        self.ambient_read |= bit
        return bool(self._ambient & bit)

    def outside(self, what: str) -> None:
        """Records that something was read that is not a fact."""
        self.outside_reads[what] = None
        self.complete = False

    def give_up(self) -> None:
        """Marks the record as incomplete: a value was read that cannot be compared later."""
        self.complete = False

    @property
    def questions(self) -> list[Question]:
        return list(self._noted)

    def name_of(self, argument: int) -> str:
        return self._names[argument]

    def words(self) -> list[str]:
        """Returns the facts as readable text: "dtype(q)", "q.shape[-1]", "scale"."""
        words = [self._word(*question) for question in self._noted]
        words += [name for i, name in enumerate(NAMES) if self.ambient_read >> i & 1]
        return list(dict.fromkeys([*words, *self.outside_reads]))

    def _word(
        self, argument: int, path: tuple[int, ...], kind: int, index: int, name: str | None
    ) -> str:
        of = self._names[argument] + "".join(f"[{i}]" for i in path)
        if kind in (VALUE, SAME):
            return of
        if kind == ATTRIBUTE:
            return f"{of}.{name}"
        if kind == DIM:
            return f"{of}.shape[{index}]"
        return f"{_WORDS[kind]}({of})"


class Place:
    """The position of an argument in a call, or of an item inside a list argument."""

    __slots__ = ("argument", "path", "recorder")

    def __init__(self, recorder: Recorder, argument: int, path: tuple[int, ...] = ()) -> None:
        self.recorder, self.argument, self.path = recorder, argument, path

    def note(self, kind: int, index: int = 0, name: str | None = None) -> None:
        self.recorder.note(self, kind, index, name)

    def item(self, index: int) -> Place:
        return Place(self.recorder, self.argument, (*self.path, index))


class _Shown:
    """Base of the proxies. isinstance() sees the real object's type, which is recorded as a
    fact."""

    def __init__(self, place: Place, real: Any) -> None:
        self.__dict__.update(_place=place, _real=real)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.__dict__["_place"].note(TYPE)
        return type(self.__dict__["_real"])


class NumberFacts(_Shown):
    """An int or float. Any operation on it records its value."""

    def _value(self) -> Any:
        self.__dict__["_place"].note(VALUE)
        return self.__dict__["_real"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value(), name)


def _plain(other: Any) -> Any:
    return other._value() if type(other) is NumberFacts else other


def _forward(name: str) -> Any:
    function = getattr(operator, name.strip("_"), None)
    if function is None or name in ("__index__",):
        return lambda self, *args: getattr(self._value(), name)(*map(_plain, args))
    return lambda self, *args: function(self._value(), *map(_plain, args))


def _reflected(name: str) -> Any:
    function = getattr(operator, name.strip("_")) if name != "__divmod__" else divmod
    return lambda self, other: function(_plain(other), self._value())


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "xor")
for _name in (*_BINARY, "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert",
              "index"):  # fmt: skip
    setattr(NumberFacts, f"__{_name}__", _forward(f"__{_name}__"))
for _name in _BINARY:
    setattr(NumberFacts, f"__r{_name}__", _reflected(f"__{_name}__"))
for _name, _function in {"bool": bool, "int": int, "float": float, "str": str, "repr": repr,
                         "hash": hash, "round": round}.items():  # fmt: skip
    setattr(NumberFacts, f"__{_name}__", lambda self, *a, _f=_function: _f(self._value(), *a))
setattr(NumberFacts, "__and__", lambda self, other: self._value() & _plain(other))  # noqa: B010
setattr(NumberFacts, "__or__", lambda self, other: self._value() | _plain(other))  # noqa: B010
setattr(NumberFacts, "__format__", lambda self, spec: format(self._value(), spec))  # noqa: B010


class ShapeFacts(Sequence[int]):
    """A shape or strides. Each dimension is a separate fact."""

    def __init__(self, place: Place, real: Sequence[int], kind: int = DIM) -> None:
        self._place, self._real, self._kind = place, real, kind

    def __len__(self) -> int:
        self._place.note(RANK)
        return len(self._real)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        at = operator.index(index)
        value = self._real[at]
        self._place.note(self._kind, at)
        return value

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def numel(self) -> int:
        return _product(self)

    def __repr__(self) -> str:
        return repr(tuple(self))


def _product(numbers: Sequence[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product


class TensorFacts(_Shown):
    """A tensor. Its dtype, shape, device and similar attributes are facts; its data is not."""

    def __getattr__(self, name: str) -> Any:
        place, real = self.__dict__["_place"], self.__dict__["_real"]
        place.note(TYPE)
        if name in _TENSOR_FACTS:
            place.note(_TENSOR_FACTS[name])
            return getattr(real, name)
        reader = _TENSOR_READERS.get(name)
        if reader is not None and hasattr(real, name):
            return reader(place, real)
        value = getattr(real, name)
        place.recorder.give_up()
        return value

    def __len__(self) -> int:
        self.__dict__["_place"].note(RANK)
        return int(ShapeFacts(self.__dict__["_place"], self.__dict__["_real"].shape)[0])

    def __getitem__(self, index: Any) -> Any:
        self.__dict__["_place"].recorder.give_up()
        return self.__dict__["_real"][index]

    def __bool__(self) -> bool:
        self.__dict__["_place"].recorder.give_up()
        return bool(self.__dict__["_real"])


def _stride(place: Place, real: Any) -> Any:
    strides = ShapeFacts(place, real.stride(), STRIDE)
    return lambda dim=None: tuple(strides) if dim is None else strides[dim]


def _size(place: Place, real: Any) -> Any:
    if not callable(real.size):  # numpy: the number of elements
        return _product(ShapeFacts(place, real.shape))
    shape = ShapeFacts(place, real.shape)
    return lambda dim=None: shape if dim is None else shape[dim]


def _noted(place: Place, kind: int, answer: Any) -> Any:
    def ask() -> Any:
        place.note(kind)
        return answer()

    return ask


_TENSOR_FACTS = {"dtype": DTYPE, "ndim": RANK, "device": DEVICE, "requires_grad": GRAD,
                 "is_cuda": DEVICE, "itemsize": DTYPE}  # fmt: skip
_TENSOR_READERS: dict[str, Callable[[Place, Any], Any]] = {
    "shape": lambda place, real: ShapeFacts(place, real.shape),
    "size": _size,
    "stride": _stride,
    "dim": lambda place, real: _noted(place, RANK, real.dim),
    "numel": lambda place, real: lambda: _product(ShapeFacts(place, real.shape)),
    "nelement": lambda place, real: lambda: _product(ShapeFacts(place, real.shape)),
    "element_size": lambda place, real: _noted(place, DTYPE, real.element_size),
    "is_floating_point": lambda place, real: _noted(place, DTYPE, real.is_floating_point),
    "get_device": lambda place, real: _noted(place, DEVICE, real.get_device),
    "is_contiguous": lambda place, real: _noted(place, CONTIGUOUS, real.is_contiguous),
}


class SequenceFacts(_Shown, Sequence[Any]):
    """A list or tuple. Records its length and the facts that are read from its items."""

    def __len__(self) -> int:
        self.__dict__["_place"].note(LENGTH)
        return len(self.__dict__["_real"])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        size = len(self)
        at = operator.index(index)
        at = at + size if at < 0 else at
        if not 0 <= at < size:
            raise IndexError("index out of range")
        return seen(self.__dict__["_place"].item(at), self.__dict__["_real"][at])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class ObjectFacts(_Shown):
    """Any other object. Attributes that are numbers, strings or None are facts."""

    def __getattr__(self, name: str) -> Any:
        place, real = self.__dict__["_place"], self.__dict__["_real"]
        value = getattr(real, name)
        place.note(TYPE)
        if value is None or type(value) in (bool, int, float, str, bytes):
            place.note(ATTRIBUTE, 0, name)
        else:
            place.recorder.give_up()
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__["_place"].recorder.give_up()
        return self.__dict__["_real"](*args, **kwargs)


_CONSTANTS = ("dtype", "device", "layout", "memory_format", "function",
              "builtin_function_or_method", "ellipsis")  # fmt: skip


def seen(place: Place, real: Any) -> Any:
    """Returns the proxy that a verifier sees instead of an argument."""
    kind = type(real)
    if real is None or kind in (bool, str, bytes):
        place.note(VALUE)  # no proxy: `is` and other interpreter checks need the real object
        return real
    if kind in (int, float):
        return NumberFacts(place, real)
    if kind in (list, tuple):
        return SequenceFacts(place, real)
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        return TensorFacts(place, real)
    if isinstance(real, (type, enum.Enum)) or kind.__name__ in _CONSTANTS:
        place.note(SAME)
        return real
    if kind.__module__ == "builtins":
        place.recorder.give_up()  # reads of dictionaries and sets cannot be recorded
        return real
    return ObjectFacts(place, real)
