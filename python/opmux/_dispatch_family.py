"""The implementations of a dispatchable function without a schema, and the choice among them."""

from __future__ import annotations

import inspect
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import _core, _plugins, _runtime
from ._ambient import NAMES, bits_of
from ._errors import AlreadyExists, Declined, Error, Failed, NoCandidate
from ._facts import Place, Recorder, seen
from ._function_implementations import FLAGS, FunctionImplementation, Refusal

_log = logging.getLogger("opmux")
_NAME = re.compile(r"([a-z][a-z0-9_]*\.)?[a-z][a-z0-9_]*")
_lock = threading.RLock()


@dataclass(frozen=True)
class FunctionStats:
    """Counters of one implementation of a dispatchable function."""

    implementation: str
    calls: int
    refused: int  # decisions in which its verifier or availability check refused the call
    declined: int
    failed: int


@dataclass
class Decision:
    """The candidates that policy allows, best first, and the reasons for those that were
    refused."""

    ordered: list[FunctionImplementation[..., Any]]
    strict: bool
    scope: int
    generation: int
    ambient: int  # bit mask of the ambient facts around the call
    recorder: Recorder
    refusals: dict[str, tuple[str, str]] = field(default_factory=dict)


class Family:
    """The state of a dispatchable function: its implementations, runtime and cached orders."""

    def __init__(self, name: str, body: Callable[..., Any], backends: tuple[str, ...]) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"'{name}' is not a valid dispatchable name: pass name= in lower case")
        self.name, self.body = name, body
        self.implementations: dict[str, FunctionImplementation[..., Any]] = {}
        self.function = _core.Dispatchable(self._call, self._take_over)
        self._backends, self._discovered = backends, False
        self._runtime: _core.Runtime | None = None
        self._told: set[tuple[str, str, str]] = set()
        self._orders: dict[tuple[int, int, int], tuple[list[str], bool]] = {}
        self._order_reads: dict[tuple[int, int], int] = {}  # ambient facts that the order reads
        self._names = _names_of(body)
        # The body runs where a promise is required, because it would run without opmux too.
        self.own = self.add(
            body, "own.body", kind="reference", deterministic=True, capture_safe=True
        )

    def add(
        self,
        function: Callable[..., Any],
        name: str,
        *,
        kind: str = "vendor",
        vendor: str | None = None,
        priority: int = -1,
        available: Callable[[], Any] | None = None,
        default_enable: bool | None = None,
        **promises: bool,
    ) -> FunctionImplementation[..., Any]:
        """Adds an implementation, or replaces the existing one with that name. `promises` are
        `atomic_outputs`, `deterministic`, `batch_invariant`, `capture_safe` and `serial`."""
        if unknown := promises.keys() - FLAGS.keys():
            raise TypeError(f"an implementation has no option '{min(unknown)}'")
        flags = sum(FLAGS[word] for word, on in promises.items() if on)
        id = f"{self.name}/{name}"
        if vendor is None:
            vendor = name.partition(".")[0] if kind == "vendor" else ""
        made = FunctionImplementation(
            self, function, id, kind=kind, vendor=vendor, priority=priority,
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
            self.forget()
        return made

    def remove(self, gone: FunctionImplementation[..., Any]) -> None:
        if self.implementations.get(gone.id) is gone:
            del self.implementations[gone.id]
        self.forget()

    def forget(self) -> None:
        """Drops all cached decisions, so that the next calls decide again."""
        self._orders.clear()
        self._order_reads.clear()
        _core.dispatchable_clear(self.function)

    def attach(self, runtime: _core.Runtime) -> None:
        """Registers the function and its implementations with a runtime, whose policy then
        decides."""
        with _lock:
            if self._runtime is runtime:
                return
            runtime.define(f"{self.name}()")
            for one in self.implementations.values():
                one.detach()
                self._attach_one(one, runtime)
            self._orders.clear()
            self._order_reads.clear()
            _core.dispatchable_attach(self.function, runtime, not runtime.disabled)
            self._runtime = runtime

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

    def _order(
        self, runtime: _core.Runtime, scope: int, generation: int, ambient: int
    ) -> tuple[list[str], bool]:
        """The ids of the candidates that policy accepts, best first, and whether it is strict."""
        reads = self._order_reads.get((scope, generation), -1)
        known = self._orders.get((scope, generation, ambient & reads))
        if known is None:
            explanation = _core.explain(runtime.op(self.name))
            ids = [one.id for one in explanation.candidates if one.accepted]
            reads = bits_of(name for name in explanation.depends_on if name in NAMES)
            self._order_reads[scope, generation] = reads
            known = self._orders[scope, generation, ambient & reads] = (ids, explanation.strict)
            while len(self._orders) > 64:
                del self._orders[next(iter(self._orders))]
            while len(self._order_reads) > 64:
                del self._order_reads[next(iter(self._order_reads))]
        return known

    def decide(self, runtime: _core.Runtime) -> Decision:
        generation = runtime.generation
        scope = _core.scope_around(runtime)[0]
        ambient = _core.ambient(runtime)
        ids, strict = self._order(runtime, scope, generation, ambient)
        ordered = [self.implementations[id] for id in ids if id in self.implementations]
        recorder = Recorder(self._names, ambient)
        recorder.ambient_read = self._order_reads[scope, generation]
        return Decision(ordered, strict, scope, generation, ambient, recorder)

    def accepted(
        self, decision: Decision, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[FunctionImplementation[..., Any]]:
        """Yields the implementations that accept the call, best first. Verifiers run lazily."""
        recorder = decision.recorder
        recorder.name_more(len(args), kwargs)
        shown = tuple(seen(Place(recorder, i), arg) for i, arg in enumerate(args))
        named = {
            key: seen(Place(recorder, len(args) + i), arg)
            for i, (key, arg) in enumerate(kwargs.items())
        }
        for one in decision.ordered:
            refusal = one.ask_available() or self._verify(one, shown, named, recorder)
            if refusal is None:
                yield one
                continue
            one.refused += 1
            decision.refusals[one.id] = (refusal.code, refusal.reason)
            self._tell(refusal.code, one.id, refusal.reason)

    def _verify(
        self,
        one: FunctionImplementation[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        recorder: Recorder,
    ) -> Refusal | None:
        before = len(recorder.outside_reads)
        refusal = one.verify(args, kwargs, recorder)
        for what in list(recorder.outside_reads)[before:]:
            self._tell(
                "dispatch.decided_each_time", one.id,
                f"its verifier reads {what}, which is not a fact of the call, so that calls that "
                "ask it are decided each time",
            )  # fmt: skip
        return refusal

    def _tell(self, code: str, id: str, reason: str) -> None:
        if (code, id, reason) not in self._told:
            self._told.add((code, id, reason))
            level = logging.INFO if code in ("verify.refused", "declined") else logging.WARNING
            extra = {"opmux_code": code, "opmux_op": self.name, "opmux_impl": id}
            _log.log(level, "%s: %s: %s", code, id, reason, extra=extra)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The slow path: decides, caches the decision and runs the implementation."""
        runtime = self._ready()
        if runtime.disabled:
            return self.body(*args, **kwargs)
        begun = time.perf_counter_ns()
        scope, reporting = _core.scope_around(runtime)
        decision = self.decide(runtime)
        found = _core.dispatchable_find(self.function, scope, decision.ambient, args, kwargs)
        candidates = self.accepted(decision, args, kwargs)
        first = self.implementations.get(found) if found is not None else None
        cached = first is not None
        if first is None:
            first = next(candidates, None)
            if first is None:
                raise self._nobody(decision)
            if decision.recorder.complete:
                _core.dispatchable_remember(
                    self.function, first.id, scope, decision.generation,
                    decision.recorder.ambient_read, decision.ambient, decision.recorder.questions,
                    args, kwargs,
                )  # fmt: skip
        run = _Run(self, decision, candidates, args, kwargs)
        if not reporting:
            return run.start(first)
        return run.reported(first, runtime, begun, cached)

    def _take_over(
        self, id: str, args: tuple[Any, ...], kwargs: dict[str, Any], raised: Exception | None
    ) -> Any:
        """Continues after the implementation of a cached decision raised or returned
        NotImplemented."""
        if raised is not None and not isinstance(raised, Exception):
            raise raised
        decision = self.decide(self._ready())
        run = _Run(self, decision, self.accepted(decision, args, kwargs), args, kwargs)
        run.ended(self.implementations[id], raised)
        return run.go_on(self.implementations[id])

    def _nobody(self, decision: Decision) -> NoCandidate:
        rows = [f"{id}: {code}: {reason}" for id, (code, reason) in decision.refusals.items()]
        explanation = _core.explain(_runtime.default_runtime().op(self.name))
        rows += [f"{c.id}: {c.code}: {c.reason}" for c in explanation.candidates if not c.accepted]
        return NoCandidate(f"no candidate can run {self.name}: {'; '.join(rows)}", "no_candidate")

    def explain(self, *args: Any, **kwargs: Any) -> _core.Explanation:
        """Returns the decision that a call with these arguments would make, with a reason for every
        candidate."""
        runtime = self._ready()
        decision = self.decide(runtime)
        counts = {id: one.refused for id, one in self.implementations.items()}
        for _ in self.accepted(decision, args, kwargs):
            pass
        for id, count in counts.items():
            self.implementations[id].refused = count
        words = [_shown(arg) for arg in args] + [f"{k}={_shown(v)}" for k, v in kwargs.items()]
        return _core.revise_explanation(
            _core.explain(runtime.op(self.name)), " ".join(words), decision.refusals,
            decision.recorder.words(),
        )  # fmt: skip

    def stats(self) -> list[FunctionStats]:
        """Counters of every implementation."""
        calls = self.function.calls
        return [
            FunctionStats(one.id, calls[one.id], one.refused, one.declined, one.failed)
            for one in self.implementations.values()
        ]


class _Run:
    """One call: tries the candidates in order until one of them completes it."""

    def __init__(
        self,
        family: Family,
        decision: Decision,
        candidates: Iterator[FunctionImplementation[..., Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._family, self._decision, self._candidates = family, decision, candidates
        self._args, self._kwargs = args, kwargs
        self._tried: list[str] = []
        self._why = ""
        self.ran = ""

    def start(self, one: FunctionImplementation[..., Any]) -> Any:
        self.ran = one.id
        _core.dispatchable_note_call(self._family.function, one.id)
        if one is self._family.own:
            return one.function(*self._args, **self._kwargs)
        try:
            result = one.function(*self._args, **self._kwargs)
        except Exception as error:
            self.ended(one, error)
        else:
            if result is not NotImplemented:
                return result
            self.ended(one, None)
        return self.go_on(one)

    def ended(self, one: FunctionImplementation[..., Any], raised: Exception | None) -> None:
        """Counts a declined or failed attempt; raises if no fallback is allowed."""
        self._tried.append(one.id)
        declined = raised is None or isinstance(raised, Declined)
        self._why = f"{type(raised).__name__}: {raised}" if raised else "returned NotImplemented"
        code = "declined" if declined else "failed"
        if declined:
            one.declined += 1
        else:
            one.failed += 1
        self._family._tell(code, one.id, self._why)
        if declined and not self._decision.strict:
            return
        if not declined and one.atomic_outputs and not self._decision.strict:
            return
        kind: type[Error] = Declined if declined else Failed
        raise kind(f"{one.id}: {self._why}", code) from raised

    def go_on(self, before: FunctionImplementation[..., Any]) -> Any:
        for one in self._candidates:
            if one.id not in self._tried:
                return self.start(one)
        raise NoCandidate(f"{before.id}: {self._why}; no candidate is left", "no_candidate")

    def reported(
        self,
        first: FunctionImplementation[..., Any],
        runtime: _core.Runtime,
        begun: int,
        cached: bool,
    ) -> Any:
        """Like `start`, and adds a report to the scopes that collect them."""
        selected = time.perf_counter_ns()
        outcome = "ok"
        try:
            return self.start(first)
        except Exception as error:
            outcome = error.code if isinstance(error, Error) else "failed"
            raise
        finally:
            _core.report_call(runtime, {
                "op": self._family.name, "implementation": self.ran,
                "fell_back": self.ran != first.id, "reason": self._why, "cached": cached,
                "generation": self._decision.generation, "select_ns": selected - begun,
                "run_ns": time.perf_counter_ns() - selected, "outcome": outcome,
                "transforms": "",
            })  # fmt: skip


def _names_of(body: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(body).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in kinds]


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
