"""The implementations of a dispatchable function without a schema, and the answers of their
verifiers. The engine chooses among them."""

from __future__ import annotations

import inspect
import logging
import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _core, _plugins, _runtime
from ._ambient import NAMES
from ._errors import AlreadyExists
from ._facts import CONTIGUOUS, DEVICE, DTYPE, RANK, Place, Question, Recorder, seen
from ._function_implementations import FLAGS, FunctionImplementation, Refusal
from ._verifiers import AMBIENT, OUTSIDE

_log = logging.getLogger("opmux")
_NAME = re.compile(r"([a-z][a-z0-9_]*\.)?[a-z][a-z0-9_]*")
_lock = threading.RLock()
_defined: weakref.WeakKeyDictionary[_core.Runtime, set[str]] = weakref.WeakKeyDictionary()
# The body is what the program would call without opmux, so it may always run: it counts as
# deterministic and as safe while a graph is captured.
_BODY_FLAGS = FLAGS["deterministic"] | FLAGS["capture_safe"]


@dataclass(frozen=True)
class FunctionStats:
    """Counters of one implementation of a dispatchable function."""

    implementation: str
    calls: int  # also those that it declined or failed
    refused: int  # decisions in which its verifier or availability check refused the call
    declined: int
    failed: int


_KEYWORDS = frozenset({"in", "out", "inout", "const", "where", "true", "false", "int", "float",
                       "bool", "enum", "str"})  # fmt: skip
_ARGUMENT = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MOST_ARGUMENTS = 32
# Facts that the engine compares, by their kind in _facts.py.
_ENGINE_FACTS = {DTYPE: 1, RANK: 2, CONTIGUOUS: 5, DEVICE: 9}


class Asked:
    """Answers for the verifiers about one call, each of which is asked once, and has the facts that
    they read."""

    def __init__(
        self,
        family: Family,
        runtime: _core.Runtime,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        counts: bool,
    ) -> None:
        self._family, self._args, self._kwargs, self._counts = family, args, kwargs, counts
        self._ambient = _core.ambient(runtime)
        self._recorders: dict[str, Recorder] = {}
        self.refusals: dict[str, Refusal] = {}

    def verify(self, id: str, facts: Any) -> str | None:
        """Returns why the implementation does not take the call, or None. The engine calls it."""
        one = self._family.implementations.get(id)
        if one is None:
            return "the function was removed"
        if id not in self._recorders:
            self._ask(one)
        self._show_reads(self._recorders[id], facts)
        refusal = self.refusals.get(id)
        if refusal is None:
            return None
        if refusal.code == "verify.broken":
            raise RuntimeError(refusal.reason)
        exact = refusal.code == "verify.refused"
        return refusal.reason if exact else f"{refusal.code}: {refusal.reason}"

    def _ask(self, one: FunctionImplementation[..., Any]) -> None:
        recorder = self._recorders[one.id] = Recorder(self._family.names, self._ambient)
        count = len(self._args)
        recorder.name_more(count, self._kwargs)
        refusal = one.ask_available()
        if refusal is None and one.has_verifier:
            shown = tuple(seen(Place(recorder, i), arg) for i, arg in enumerate(self._args))
            named = {
                key: seen(Place(recorder, count + i), arg)
                for i, (key, arg) in enumerate(self._kwargs.items())
            }
            refusal = one.verify(shown, named, recorder)
        if refusal is None:
            return
        self.refusals[one.id] = refusal
        if self._counts:
            one.refused += 1
            self._family.tell(refusal.code, one.id, refusal.reason)

    def _show_reads(self, recorder: Recorder, facts: Any) -> None:
        """Reads the facts that a verifier read from the engine, so that its classes have them."""
        for argument, path, kind, _, _ in recorder.questions:
            if kind in _ENGINE_FACTS and not path:
                facts.get(_ENGINE_FACTS[kind], recorder.name_of(argument))
        for i, name in enumerate(NAMES):
            if recorder.ambient_read >> i & 1:
                facts.get(AMBIENT, name)
        for what in recorder.outside_reads:
            facts.get(OUTSIDE, what)

    def questions(self, chosen: str) -> list[Question] | None:
        """Returns the facts on which the choice depends: those that the verifiers of the chosen and
        of the refused implementations read. None if one of them cannot be compared."""
        found: dict[Question, None] = {}
        for id, recorder in self._recorders.items():
            if id != chosen and id not in self.refusals:
                continue
            if not recorder.complete:
                return None
            found.update(dict.fromkeys(recorder.questions))
        return list(found)

    def words(self, chosen: str) -> list[str]:
        """Returns the same facts as readable text."""
        found: dict[str, None] = {}
        for id, recorder in self._recorders.items():
            if id == chosen or id in self.refusals:
                found.update(dict.fromkeys(recorder.words()))
        return list(found)


class Family:
    """The state of a dispatchable function: its implementations and its runtime."""

    def __init__(
        self, name: str, body: Callable[..., Any], backends: tuple[str, ...], pure: bool
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name}' is not a valid dispatchable name: pass name= in lower case")
        self.name, self.body = name, body
        self.implementations: dict[str, FunctionImplementation[..., Any]] = {}
        self.function = _core.Dispatchable(self._call)
        self._backends, self._discovered = backends, False
        self._runtime: _core.Runtime | None = None
        self._told: set[tuple[str, str, str]] = set()
        self._parameters = _parameters_of(body)
        self.names = [name for position, name in self._parameters if position >= 0]
        flags = _BODY_FLAGS | (FLAGS["atomic_outputs"] if pure else 0)
        self.own = self.add(body, "own.body", kind="reference", flags=flags)

    def add(
        self,
        function: Callable[..., Any],
        name: str,
        *,
        kind: str = "vendor",
        vendor: str | None = None,
        priority: int = -1,
        caps: dict[str, Any] | None = None,
        flags: int = 0,
        available: Callable[[], Any] | None = None,
        default_enable: bool | None = None,
    ) -> FunctionImplementation[..., Any]:
        """Adds an implementation, or replaces the existing one with that name."""
        id = f"{self.name}/{name}"
        if vendor is None:
            vendor = name.partition(".")[0] if kind == "vendor" else ""
        made = FunctionImplementation(
            self, function, id, kind=kind, vendor=vendor, priority=priority, caps=caps or {},
            flags=flags, available=available, default_enable=default_enable,
        )  # fmt: skip
        with _lock:
            before = self.implementations.get(id)
            if before is not None:
                before.detach()
            if self._runtime is not None:
                self._attach_one(made, self._runtime)
            self.implementations[id] = made
            _core.dispatchable_add(self.function, id, function, name == "own.body")
        return made

    def remove(self, gone: FunctionImplementation[..., Any]) -> None:
        if self.implementations.get(gone.id) is gone:
            del self.implementations[gone.id]
        _core.dispatchable_clear(self.function)

    def renew(self, changed: FunctionImplementation[..., Any]) -> None:
        """Registers an implementation again, so that the next calls decide again."""
        with _lock:
            if self._runtime is not None and self.implementations.get(changed.id) is changed:
                changed.detach()
                self._attach_one(changed, self._runtime)
            _core.dispatchable_clear(self.function)

    def attach(self, runtime: _core.Runtime) -> None:
        """Defines the operator of the function in a runtime and registers its implementations."""
        with _lock:
            if self._runtime is runtime:
                return
            parameters = self._define(runtime)
            for one in self.implementations.values():
                one.detach()
                self._attach_one(one, runtime)
            _core.dispatchable_attach(
                self.function, runtime, not runtime.disabled, self.name, parameters
            )
            self._runtime = runtime

    def _define(self, runtime: _core.Runtime) -> list[tuple[int, str]]:
        """Defines the operator: its arguments are the parameters that may be tensors. Returns them.
        An operator that an earlier version of the function has defined keeps its arguments."""
        usable = [
            (position, name)
            for position, name in self._parameters
            if _ARGUMENT.fullmatch(name) and name not in _KEYWORDS
        ][:_MOST_ARGUMENTS]
        arguments = ", ".join(f"Tensor? {name}" for _, name in usable)
        try:
            runtime.define(f"#! opaque\n{self.name}({arguments})")
        except AlreadyExists:
            if self.name not in _defined.get(runtime, ()):
                raise  # an operator with a schema has this name
            positions = {name: position for position, name in self._parameters}
            defined = _core.arguments(runtime.op(self.name))
            return [(positions.get(one.name, -1), one.name) for one in defined]
        _defined.setdefault(runtime, set()).add(self.name)
        return usable

    @staticmethod
    def _attach_one(one: FunctionImplementation[..., Any], runtime: _core.Runtime) -> None:
        one.attach(runtime)
        _runtime.apply_switch(runtime, one.provider)

    def detach(self) -> None:
        for one in self.implementations.values():
            one.detach()

    def _ready(self) -> _core.Runtime:
        runtime = _runtime.default_runtime()
        self.attach(runtime)
        if not self._discovered:
            with _lock:
                self._discovered = True
                _plugins.load_for(runtime, self.name, self._backends)
        return runtime

    def tell(self, code: str, id: str, reason: str) -> None:
        """Logs why an implementation was refused, once for each reason."""
        if (code, id, reason) not in self._told:
            self._told.add((code, id, reason))
            level = logging.INFO if code == "verify.refused" else logging.WARNING
            extra = {"opmux_code": code, "opmux_op": self.name, "opmux_impl": id}
            _log.log(level, "%s: %s: %s", code, id, reason, extra=extra)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The slow path: a call for which the extension has no cached decision."""
        runtime = self._ready()
        if runtime.disabled:
            return self.body(*args, **kwargs)
        asked = Asked(self, runtime, args, kwargs, counts=True)
        return _core.dispatchable_call(self.function, asked, args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> _core.Explanation:
        """Returns the decision that a call with these arguments would make, with a reason for every
        candidate."""
        asked = Asked(self, self._ready(), args, kwargs, counts=False)
        explanation = _core.dispatchable_explain(self.function, asked, args, kwargs)
        words = [_shown(arg) for arg in args] + [f"{k}={_shown(v)}" for k, v in kwargs.items()]
        refusals = {id: (one.code, one.reason) for id, one in asked.refusals.items()}
        return _core.revise_explanation(
            explanation, " ".join(words), refusals, asked.words(explanation.chosen)
        )

    def stats(self) -> list[FunctionStats]:
        """Counters of every implementation."""
        calls = self.function.calls
        runtime = self._runtime
        counted = (
            {one.implementation: one for one in runtime.stats()} if runtime is not None else {}
        )
        return [
            FunctionStats(
                one.id,
                calls[one.id],
                one.refused,
                counted[one.id].declined if one.id in counted else 0,
                counted[one.id].failed if one.id in counted else 0,
            )
            for one in self.implementations.values()
        ]


def _parameters_of(body: Callable[..., Any]) -> list[tuple[int, str]]:
    """The parameters of the function: position among positional arguments (-1: by name only) and
    name."""
    try:
        parameters = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = (*positional, inspect.Parameter.KEYWORD_ONLY)
    return [
        (position if one.kind in positional else -1, one.name)
        for position, one in enumerate(parameters)
        if one.kind in named
    ]


def _shown(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return repr(value)
    return f"{str(dtype).removeprefix('torch.')}[{','.join(map(str, shape))}]"


def declare(family: Family, body: Callable[..., Any]) -> None:
    """Registers a family by name; replaces an earlier one of the same function."""
    with _lock:
        before: Family | None = _runtime.families.get(family.name)
        if before is not None:
            where = (before.body.__module__, before.body.__qualname__)
            if where != (body.__module__, body.__qualname__):
                raise AlreadyExists(f"{family.name} is already dispatchable in {where[0]}", "name")
            before.detach()
        _runtime.families[family.name] = family
        runtime = _runtime.existing_runtime()
        if runtime is not None:
            family.attach(runtime)
