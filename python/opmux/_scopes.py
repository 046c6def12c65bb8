"""Scopes: policies, call options and reports for a block, in this task or thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Token
from types import TracebackType
from typing import Any

from . import _core
from ._ambient import bits_of
from ._errors import Unexpected
from ._runtime import default_runtime

_variable = _core.scope_variable
_LISTS = ("prefer", "require", "deny", "allow", "allow_vendors", "deny_vendors", "transforms")


def policy(
    *,
    prefer: Sequence[str] = (),
    require: Sequence[str] = (),
    deny: Sequence[str] = (),
    allow: Sequence[str] = (),
    strict: bool | None = None,
    allow_vendors: Sequence[str] = (),
    deny_vendors: Sequence[str] = (),
    per_op: Mapping[str, Sequence[str]] | None = None,
    transforms: Sequence[str] = (),
    allow_none: bool = False,
    tuning: str | None = None,
    rules: Sequence[_core.Rule] = (),
) -> _core.Policy:
    """Makes a policy. Lists hold tokens: `default`, `vendor`, `reference`, `vendor:NAME`,
    `impl:ID`, or a glob with `/`. `transforms` lists the conversions that opmux may apply to
    tensors so that an implementation can accept them: `contiguous` and `widen`, or `none` alone.
    `allow_none` permits the policy to leave operators without an implementation that can run.
    `tuning` says whether measured speeds count: `bundle` (the default) or `off`; with `online` the
    runtime measures sampled calls and proposes faster implementations, and with `online_apply`
    later calls use them."""
    made = _core.Policy()
    given = (prefer, require, deny, allow, allow_vendors, deny_vendors, transforms)
    for name, tokens in zip(_LISTS, given, strict=True):
        if isinstance(tokens, str):
            raise TypeError(f"{name} must be a list of tokens, not a str")
        setattr(made, name, list(tokens))
    if strict is not None:
        made.strict = strict
    made.allow_none = allow_none
    made.tuning = tuning
    if per_op:
        made.per_op = {name: list(tokens) for name, tokens in per_op.items()}
    made.rules = list(rules)
    return made


def rule(**fields: Any) -> _core.Rule:
    """Makes a rule: `rule(op="rms_norm", when=Condition.dim("H", ">", 4096),
    prefer=["vendor"])`."""
    made = _core.Rule()
    for name, value in fields.items():
        if not hasattr(made, name):
            raise TypeError(f"a rule has no field '{name}'")
        setattr(made, name, value)
    return made


def _policy_of(wanted: _core.Policy | None, fields: Mapping[str, Any]) -> _core.Policy:
    """The policy of a scope, which is made from fields unless one is given."""
    if wanted is None:
        return policy(**fields)
    if fields:
        raise TypeError(f"give a policy or its fields, not both: {', '.join(fields)}")
    return wanted


class scope:
    """A policy for a block, combined with the scopes around it. Follows tasks and threads as
    context variables do, and can be entered any number of times."""

    def __init__(
        self,
        wanted: _core.Policy | None = None,
        *,
        tag: str | None = None,
        max_threads: int | None = None,
        facts: Sequence[str] = (),
        runtime: _core.Runtime | None = None,
        _reports: list[dict[str, Any]] | None = None,
        **fields: Any,
    ) -> None:
        self._policy = _policy_of(wanted, fields)
        self._tag, self._max_threads, self._reports = tag, max_threads, _reports
        self._ambient = bits_of([facts] if isinstance(facts, str) else facts)
        self._runtime = runtime
        self._tokens: dict[_core.Scope, Token[Any]] = {}

    def __enter__(self) -> scope:
        made = _core.make_scope(
            self._runtime or default_runtime(),
            self._policy,
            _variable.get(None),
            tag=self._tag,
            max_threads=self._max_threads,
            ambient=self._ambient,
            reports=self._reports,
        )
        self._tokens[made] = _variable.set(made)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Several tasks and threads may have entered this object: each resets the entry it made.
        current = _variable.get(None)
        entry = current if current in self._tokens else next(reversed(self._tokens))
        _variable.reset(self._tokens.pop(entry))


def prefer(*tokens: str) -> scope:
    """Prefers these implementations; others run if none of these accepts the call."""
    return scope(prefer=tokens)


def require(*tokens: str) -> scope:
    """Allows only these implementations; a call raises if none of them accepts it."""
    return scope(require=tokens)


def deny(*tokens: str) -> scope:
    """Never runs these implementations, not even as the last fallback."""
    return scope(deny=tokens)


def strict(on: bool = True) -> scope:
    """Disables fallback: a call raises if the first implementation declines or fails."""
    return scope(strict=on)


def allow_vendors(*names: str) -> scope:
    """Allows, of the vendor implementations, only those of these vendors."""
    return scope(allow_vendors=names)


def deny_vendors(*names: str) -> scope:
    """Excludes the implementations of these vendors."""
    return scope(deny_vendors=names)


def policy_scope(wanted: _core.Policy) -> scope:
    """A scope with an existing policy."""
    return scope(wanted)


def options(
    *, tag: str | None = None, max_threads: int | None = None, facts: Sequence[str] = ()
) -> scope:
    """Sets options of the calls in a block: a tag that rules can match, a limit on threads, and
    ambient facts that hold besides torch's, such as `facts=["training"]`; see `ambient`."""
    return scope(tag=tag, max_threads=max_threads, facts=facts)


class thread_scope:
    """A policy for this thread that also applies to C++ code called from it. Other scopes apply
    only to calls from Python."""

    def __init__(
        self,
        wanted: _core.Policy | None = None,
        runtime: _core.Runtime | None = None,
        **fields: Any,
    ) -> None:
        self._policy = _policy_of(wanted, fields)
        self._runtime = runtime
        self._entered = threading.local()

    def __enter__(self) -> thread_scope:
        runtime = self._runtime or default_runtime()
        native = _core.ThreadScope(runtime, self._policy)
        native.__enter__()
        around = scope(self._policy, runtime=runtime)  # Python scopes inside combine with this one
        try:
            around.__enter__()
        except BaseException:
            native.__exit__(None, None, None)
            raise
        self._entered.__dict__.setdefault("all", []).append((native, around))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        native, around = self._entered.all.pop()
        around.__exit__(kind, error, trace)
        native.__exit__(kind, error, trace)


class Report:
    """The report of one call: which implementation ran, and how."""

    __slots__ = (
        "op", "implementation", "fell_back", "reason", "cached", "generation", "select_ns",
        "run_ns", "outcome", "transforms", "transform_ns",
    )  # fmt: skip
    op: str
    implementation: str
    fell_back: bool
    reason: str
    cached: bool
    generation: int
    select_ns: int
    run_ns: int
    outcome: str
    transforms: str
    transform_ns: int

    def __init__(self, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        why = f" because {self.reason}" if self.fell_back else ""
        return f"<Report {self.implementation or self.op} {self.outcome}{why}>"


class Reports(Sequence[Report]):
    """The reports of the calls in a block, oldest first. The fields of the last report are also
    attributes of this object."""

    def __init__(self, raw: list[dict[str, Any]]) -> None:
        self._raw = raw

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [Report(fields) for fields in self._raw[index]]
        return Report(self._raw[index])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._raw:
            raise AttributeError(f"no call was made, so no report has '{name}'")
        return getattr(self[-1], name)

    def implementations(self) -> list[str]:
        """Returns the id of the implementation that each call ran."""
        return [fields["implementation"] for fields in self._raw]


@contextmanager
def report(runtime: _core.Runtime | None = None) -> Iterator[Reports]:
    """Collects reports of the calls in a block: `with opmux.report() as calls: ...`."""
    raw: list[dict[str, Any]] = []
    with scope(_reports=raw, runtime=runtime):
        yield Reports(raw)


@contextmanager
def expect(*patterns: str, runtime: _core.Runtime | None = None) -> Iterator[Reports]:
    """For tests: raises Unexpected if a call in the block ran an implementation that matches none
    of the globs, or if no call was made."""
    import fnmatch

    with report(runtime) as calls:
        yield calls
    ran = calls.implementations()
    wrong = [one for one in ran if not any(fnmatch.fnmatchcase(one, p) for p in patterns)]
    if wrong or not ran:
        found = f"{', '.join(wrong)} ran" if wrong else "no call was made"
        raise Unexpected(f"expected {' or '.join(patterns)}, but {found}", "python.expect")
