"""Registers operators as `torch.ops.opmux.*`, for compiled and exported code, fake tensors and
autograd."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import _core, _ops
from .._errors import AlreadyExists, InvalidArgument
from .._runtime import default_runtime, families
from ._autograd import FORMULAS
from ._schema import TorchSchema, default_of, torch_name
from ._shapes import Inference

_library: Any = torch.library.Library("opmux", "DEF")  # type: ignore[no-untyped-call]
_entries: dict[str, Entry] = {}
_lock = threading.RLock()
_TAGS = (torch.Tag.pt2_compliant_tag,)
_KEYS = ("CPU", "CUDA", "XPU", "MPS", "PrivateUse1")  # PrivateUse1: devices of torch's plugins


def _dispatch_of(kind: type[torch.Tensor]) -> Any:
    """Returns a subclass's `__torch_dispatch__`; subclasses without one share torch.Tensor's."""
    return getattr(kind, "__torch_dispatch__", None)


_plain = _dispatch_of(torch.Tensor)


def _tensors(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _needs_grad(values: Iterable[Any]) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(values))


def refuse_grad(operator: str) -> InvalidArgument:
    """Makes the error for a call with tensors that require grad when opmux has no derivative."""
    return InvalidArgument(
        f"{operator}: a tensor requires grad, but opmux has no derivative for this call: make it "
        "under torch.no_grad() or torch.inference_mode()",
        "python.requires_grad",
    )


class Entry:
    """One operator that is registered with torch."""

    def __init__(self, operator: _core.Operator) -> None:
        self.schema = TorchSchema.of(operator)
        self.text = operator.schema
        self.function: Callable[..., Any] = operator.function
        self._inference = Inference(operator)
        self._names = tuple(a.name for a in self.schema.inputs)
        self.functional: Any = None
        self.out: Any = None
        if self._inference.possible():
            self.functional = self._define(self.schema.functional(), "default", self._functional)
        if self.schema.outputs:
            self.out = self._define(self.schema.out(), "out", self._write)
        self.formula = self.schema.name in FORMULAS and self.functional is not None
        if self.formula:
            FORMULAS[self.schema.name].register(f"opmux::{torch_name(self.schema.name)}", _library)
        self.traceable = self._make_traceable()

    def _define(self, text: str, overload: str, run: Callable[..., Any]) -> Any:
        name = torch_name(self.schema.name)
        full = name if overload == "default" else f"{name}.{overload}"
        _library.define(text, tags=_TAGS)
        for key in _KEYS:
            _library.impl(full, run, key)
        fake = self._fake if overload == "default" else self._fake_out
        torch.library.register_fake(f"opmux::{full}", fake, lib=_library)
        return getattr(getattr(torch.ops.opmux, name), overload)

    def _functional(self, *args: Any) -> Any:
        return self.function(*args)

    def _write(self, *args: Any, **outputs: Any) -> None:
        given = tuple(outputs.get(name) for name in self.schema.out_names())
        self.function(*args, out=given[0] if len(given) == 1 else given)

    def _fake(self, *args: Any) -> Any:
        if _needs_grad(args):
            raise refuse_grad(self.schema.name)
        made = self._inference.outputs(dict(zip(self._names, args, strict=False)))
        if not made:
            return None
        return made[0] if len(made) == 1 else tuple(made)

    def _fake_out(self, *args: Any, **outputs: Any) -> None:
        if _needs_grad((*args, *outputs.values())):
            raise refuse_grad(self.schema.name)
        self._inference.check(dict(zip(self._names, args, strict=False)))

    def _make_traceable(self) -> Callable[..., Any]:
        """Returns the operator's function as Python code that torch.compile can trace."""
        name, functional, write = self.schema.name, self.functional, self.out
        rest = tuple((a.name, default_of(a)) for a in self.schema.inputs)
        names = self.schema.out_names()

        def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            full = list(args)
            used = 0
            for argument, default in rest[len(args) :]:
                used += argument in kwargs
                full.append(kwargs.get(argument, default))
            if used != len(kwargs) or len(full) > len(rest):
                raise InvalidArgument(f"{name}: unknown or too many arguments")
            if out is None:
                if functional is None:
                    raise InvalidArgument(f"{name}: pass out=, its shape cannot be inferred")
                return functional(*full)
            if len(names) == 1:
                write(*full, out=out)
            else:
                write(*full, **dict(zip(names, out, strict=True)))
            return out

        return call

    def use(self, function: Callable[..., Any]) -> None:
        """Calls this function from now on, and makes torch.compile replace it by the operator."""
        self.function = function
        torch.compiler.substitute_in_graph(function, skip_signature_check=True)(self.traceable)


def register(operator: _core.Operator | str) -> Any:
    """Registers an operator with torch and returns `torch.ops.opmux.NAME`. Importing `opmux.torch`
    registers the operators that exist; register those that you define later."""
    if isinstance(operator, str):
        operator = default_runtime().op(operator)
    name = operator.name
    with _lock:
        entry = _entries.get(name)
        if entry is None:
            entry = _entries[name] = Entry(operator)
        elif entry.text != operator.schema:
            raise AlreadyExists(
                f"{name} is registered with torch under another schema: {entry.text}", "torch"
            )
        _follow(name, _ops.function_of(name))
    return getattr(torch.ops.opmux, torch_name(name))


def _follow(name: str, function: Any) -> None:
    entry = _entries.get(name)
    if entry is not None and entry.function is not function:
        entry.use(function)


def follow_functions() -> None:
    """Makes torch use the new functions of `opmux.ops` when the default runtime is replaced."""
    _ops.listeners.append(_follow)


_inside = threading.local()


def _bare(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_bare(one) for one in value)
    if isinstance(value, torch.Tensor) and _dispatch_of(type(value)) is _plain:
        return value.as_subclass(torch.Tensor)
    return value


def reroute(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Makes a call through `torch.ops`, for tensors that torch has to handle."""
    if name not in _entries:
        register(name)
    entry = _entries[name]
    if _needs_grad((*args, *kwargs.values())):
        if not entry.formula or kwargs.get("out") is not None:
            raise refuse_grad(name)
    elif getattr(_inside, "name", None) == name:  # torch came back here: a plain subclass
        bare = {key: _bare(value) for key, value in kwargs.items()}
        return entry.function(*_bare(args), **bare)
    before, _inside.name = getattr(_inside, "name", None), name
    try:
        return entry.traceable(*args, **kwargs)
    finally:
        _inside.name = before


def register_all() -> None:
    """Registers every operator of the runtime that is not yet registered with torch."""
    for info in default_runtime().list():
        if info.name not in families:  # those without a schema are Python-only
            register(info.name)
