"""Python functions as implementations of operators, and operators defined from Python."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar

from . import _core
from ._errors import InvalidArgument
from ._function_implementations import FLAGS, why_unavailable
from ._runtime import apply_switch, default_runtime, families
from ._verifiers import Verifier

P = ParamSpec("P")
R = TypeVar("R")
_VERIFY_RECORDED = 32


def _copy_to(out: Any, result: Any) -> None:
    if isinstance(out, tuple):
        for one, value in zip(out, result, strict=True):
            _copy_to(one, value)
        return
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(out, torch.Tensor):
        out.copy_(result)
        return
    import numpy

    numpy.copyto(out, result)


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of this name, or takes any keyword argument. Functions
    without a signature are assumed to."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    kinds = [p.kind for p in parameters.values()]
    return name in parameters or inspect.Parameter.VAR_KEYWORD in kinds


def _with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function that returns its result so that it writes the result to `out` instead."""

    @functools.wraps(function)
    def write(*args: Any, out: Any, **stream: int) -> None:
        _copy_to(out, function(*args, **stream))

    return write


def _check_function(id: str, function: Callable[..., Any], stream: bool, device: str) -> None:
    """Raises `InvalidArgument` for a function that could not run or does not take `stream`."""
    import inspect

    # The class of Triton's kernels, known by its name because Triton need not be installed.
    if any(base.__name__ == "KernelInterface" for base in inspect.getmro(type(function))):
        raise InvalidArgument(
            f"{id}: a Triton kernel cannot run without a grid: register a function that launches "
            "it, as in kernel[grid](x, out, ...)",
            "python.option",
        )
    if stream and device == "cpu":
        raise InvalidArgument(
            f"{id}: stream= is for implementations on a device, and device= says cpu",
            "python.option",
        )
    if stream and not _takes(function, "stream"):
        raise InvalidArgument(
            f"{id}: stream=True needs a function with a parameter `stream`", "python.option"
        )


def _has_outputs(operator: _core.Operator) -> bool:
    return any(argument.output for argument in _core.arguments(operator))


def _once(available: Callable[[], Any] | None) -> Callable[[], str | None] | None:
    """Wraps `available` so that it is called once, also if its implementation is registered again,
    and returns the reason of a refusal or None."""
    if available is None:
        return None

    @functools.cache
    def probe() -> str | None:
        refusal = why_unavailable(available)
        return None if refusal is None else refusal.reason

    return probe


class _Collection:
    """The implementations of one runtime that `register_together` registers when its block ends."""

    def __init__(self, runtime: _core.Runtime) -> None:
        self.runtime = runtime
        self.members: list[PythonImplementation[Any, Any]] = []

    def register(self) -> None:
        _core.implement_together(self.runtime, [member._draft() for member in self.members])
        for member in self.members:
            member._collected = False
        for backend in {member._backend for member in self.members}:
            apply_switch(self.runtime, backend)


_collecting: ContextVar[_Collection | None] = ContextVar("opmux_collecting", default=None)


@contextlib.contextmanager
def register_together(runtime: _core.Runtime | None = None) -> Iterator[None]:
    """Registers the implementations that are decorated inside the block in one step, when the block
    ends: all of them, or none if one is refused or the block raises.

        with opmux.register_together():

            @opmux.implementation("softmax", "mine.first")
            def first(x, dim, *, out): ...

            @opmux.implementation("rms_norm", "mine.second")
            def second(x, weight, eps, round_before_weight, *, out): ...

    The runtime publishes once instead of once for each, which matters for thousands of them. The
    error names the first implementation that is refused; its class is that of the error that
    `implementation` would raise. Operators must be defined before the block ends, see `define_all`.
    The block concerns implementations for `runtime` (the default runtime if it is not given) that
    the same thread or task decorates; others, and those of dispatchable functions without a schema,
    are registered at once. A block inside another one registers its implementations when it ends.
    """
    collection = _Collection(runtime or default_runtime())
    token = _collecting.set(collection)
    try:
        yield
    finally:
        _collecting.reset(token)
    collection.register()


class PythonImplementation(Generic[P, R]):
    """An implementation that is a Python function. Calling the object calls the decorated function
    directly, without dispatch."""

    def __init__(
        self,
        function: Callable[P, R],
        id: str,
        runtime: _core.Runtime,
        **options: Any,
    ) -> None:
        functools.update_wrapper(self, function)
        self.id = id
        self._function, self._runtime, self._options = function, runtime, options
        self._verifier: Verifier | None = None
        self._probe = _once(options["available"])
        collection = _collecting.get()
        self._collected = collection is not None and collection.runtime is runtime
        if collection is not None and self._collected:
            collection.members.append(self)
        else:
            self._register()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def verifier(self, check: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates a function that takes the operator's inputs in schema order. It returns `True`
        to accept, or a str to refuse with that reason. Any other result, and any exception, refuses
        the call as a broken verifier. The verifier sees shapes, dtypes and scalars, never data. Its
        answer is cached for calls that agree in the scalars, in which tensors are given, and in the
        other facts that it read, so it should be a function of them. torch's modes and
        `opmux.ambient(name)` are facts. If it reads an environment variable or another mode of
        torch, it is asked for every call, and the event `dispatch.decided_each_time` names what it
        read."""
        operator = self._runtime.op(self.id.partition("/")[0])
        self._verifier = Verifier(operator, check)
        if not self._collected:
            self.withdraw()
            self._register()
        return check

    def withdraw(self) -> None:
        """Removes the implementation from the runtime; returns when no call is running it."""
        _core.withdraw(self._runtime, self.id)

    @property
    def _backend(self) -> str:
        return self.id.partition("/")[2].partition(".")[0]

    def _draft(self) -> _core.ImplementationDraft:
        operator = self._runtime.op(self.id.partition("/")[0])
        function: Callable[..., Any] = self._function
        if _has_outputs(operator) and not _takes(function, "out"):
            function = _with_out(function)
        options = dict(self._options)
        options["available"] = self._probe
        if self._verifier is not None:
            options["flags"] |= _VERIFY_RECORDED
        return _core.draft(self._runtime, self.id, function, self._verifier, reads=[], **options)

    def _register(self) -> None:
        _core.implement(self._runtime, self._draft())
        apply_switch(self._runtime, self._backend)

    def __repr__(self) -> str:
        return f"<implementation {self.id}>"


def _options(
    name: str,
    *,
    kind: str = "vendor",
    vendor: str | None = None,
    priority: int = -1,
    dtypes: Sequence[str] | None = None,
    multiple_of: Mapping[str, int] | None = None,
    at_least: Mapping[str, int] | None = None,
    at_most: Mapping[str, int] | None = None,
    hints: Sequence[_core.Hint] = (),
    contiguous: bool = False,
    device: str | None = None,
    arch: tuple[str, str] | None = None,
    available: Callable[[], Any] | None = None,
    default_enable: bool | None = None,
    stream: bool = False,
    build: str = "",
    **promises: bool,
) -> dict[str, Any]:
    """The options of `implementation` as the extension takes them."""
    caps: dict[str, Any] = {"contiguous": contiguous}
    if device is not None:
        caps["device"] = device
    if arch is not None:
        caps["arch"] = (arch[0], arch[1])
    for key, value in (("multiple_of", multiple_of), ("at_least", at_least), ("at_most", at_most)):
        caps[key] = dict(value or {})
    if dtypes is not None:
        caps["dtypes"] = list(dtypes)
    if vendor is None:
        vendor = name.partition(".")[0] if kind == "vendor" else ""
    if unknown := promises.keys() - FLAGS.keys():
        raise TypeError(f"an implementation has no option '{min(unknown)}'")
    flags = sum(FLAGS[word] for word, on in promises.items() if on)
    return {
        "kind": kind, "vendor": vendor, "priority": priority, "caps": caps, "flags": flags,
        "available": available, "default_enable": default_enable, "stream": stream,
        "hints": list(hints), "build": build,
    }  # fmt: skip


def _refuse_serial(name: str, serial: bool) -> None:
    if serial:
        raise InvalidArgument(
            f"{name}: serial= is for implementations with prepared states, which a Python function "
            "does not have; use a lock",
            "python.option",
        )


def function_options(
    name: str,
    *,
    pure: bool = False,
    atomic_outputs: bool = False,
    serial: bool = False,
    device: str = "cpu",
    arch: tuple[str, str] | None = None,
    stream: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """The options of an implementation of a dispatchable function. Raises `InvalidArgument` for one
    that has no effect there."""
    _refuse_serial(name, serial)
    if arch is not None or device != "cpu" or stream:
        raise InvalidArgument(
            f"{name}: a dispatchable function has no schema, so that device=, arch= and stream= "
            "have no effect",
            "caps.value",
        )
    for word in ("multiple_of", "at_least", "at_most", "hints"):
        if options.get(word):
            raise InvalidArgument(
                f"{name}: {word}= needs the named dimensions of a schema, and a dispatchable "
                "function has none; compare sizes in a verifier",
                "python.option",
            )
    if options.get("build"):
        raise InvalidArgument(
            f"{name}: build= is for implementations of operators with a schema",
            "python.option",
        )
    made = _options(name, atomic_outputs=pure or atomic_outputs, **options)
    del made["stream"], made["hints"], made["build"]
    _core.check_caps(made["caps"])
    return made


def implementation(
    op: str,
    name: str,
    *,
    kind: str = "vendor",
    vendor: str | None = None,
    priority: int = -1,
    dtypes: Sequence[str] | None = None,
    multiple_of: Mapping[str, int] | None = None,
    at_least: Mapping[str, int] | None = None,
    at_most: Mapping[str, int] | None = None,
    hints: Sequence[_core.Hint] = (),
    contiguous: bool = False,
    device: str = "cpu",
    arch: tuple[str, str] | None = None,
    stream: bool = False,
    serial: bool = False,
    atomic_outputs: bool = False,
    deterministic: bool = False,
    batch_invariant: bool = False,
    capture_safe: bool = False,
    pure: bool = False,
    available: Callable[[], Any] | None = None,
    default_enable: bool | None = None,
    build: str = "",
    runtime: _core.Runtime | None = None,
) -> Callable[[Callable[P, R]], PythonImplementation[P, R]]:
    """Registers a Python function as an implementation of an operator or a dispatchable function.

    The function gets the inputs in schema order and the outputs as `out=`; without an `out`
    parameter it returns the outputs instead. Raising `Declined` gives the outcome `declined`, any
    other exception the outcome `failed`. `device` is the type of device that holds the tensors:
    "cpu", "cuda", "npu". `arch` is the range of device architectures that the function supports, as
    numbers with dots between them: `("8.0", "")`; a device without an architecture is refused (see
    `Runtime.set_architecture`). `multiple_of`, `at_least` and `at_most` say which calls the
    function can run; `hints` say what it is good at: `[opmux.Hint("rows", most=4, priority=150)]`
    is its priority for up to 4 rows, in place of `priority`. With `stream=True` the function also
    gets `stream=`, the handle of the device's queue as an int (0: the default stream), enqueues its
    work there and may return before it is done. The other implementations of the provider must
    agree. `available` is called once, when the implementation is first a candidate or listed, and
    returns True, or a str with the reason why the implementation cannot be used in this process. It
    must not call opmux. With `default_enable=False`, the backend `provider` is used only if
    OPMUX_BACKEND_PROVIDER=1 or `runtime.enable_backend` switches it on; its implementations that
    state it must agree. `build` names the version of the code, such as "acme-1.4", without spaces:
    lockfiles and measured rows of another build do not hold. `pure` is for dispatchable functions
    without a schema: the function changes neither its arguments nor anything else that counts, so
    that another implementation may run after it failed.
    """
    given: dict[str, Any] = {
        "kind": kind, "vendor": vendor, "priority": priority, "dtypes": dtypes,
        "multiple_of": multiple_of, "at_least": at_least, "at_most": at_most,
        "contiguous": contiguous, "deterministic": deterministic,
        "batch_invariant": batch_invariant, "capture_safe": capture_safe, "available": available,
        "default_enable": default_enable, "hints": hints, "build": build,
    }  # fmt: skip

    def decorate(function: Callable[P, R]) -> PythonImplementation[P, R]:
        family = families.get(op) if runtime is None else None
        if family is not None:
            options = function_options(
                name, pure=pure, atomic_outputs=atomic_outputs, serial=serial, device=device,
                arch=arch, stream=stream, **given
            )  # fmt: skip
            # A FunctionImplementation, which has the same methods.
            added: PythonImplementation[P, R] = family.add(function, name, **options)
            return added
        if pure:
            raise InvalidArgument(
                f"{op}/{name}: pure= is for dispatchable functions without a schema; a kernel that "
                "writes nothing unless it succeeds says atomic_outputs=True",
                "python.option",
            )
        _refuse_serial(f"{op}/{name}", serial)
        _check_function(f"{op}/{name}", function, stream, device)
        options = _options(
            name, atomic_outputs=atomic_outputs, device=device, arch=arch, stream=stream, **given
        )  # fmt: skip
        return PythonImplementation(
            function, f"{op}/{name}", runtime or default_runtime(), **options
        )

    return decorate


def define(schema: str, *, data_checked: bool = False) -> _core.Operator:
    """Defines an operator by its schema. Defining the same schema again returns the same
    operator."""
    default_runtime().define(schema, data_checked=data_checked)
    return default_runtime().op(schema.partition("(")[0].strip())


def define_all(schemas: Iterable[str], *, data_checked: bool = False) -> list[_core.Operator]:
    """Defines several operators in one step, and returns them: all of them, or none if one is
    refused. The error then names the first one. The runtime publishes once instead of once for
    each, which matters for thousands of them."""
    texts = list(schemas)
    default_runtime().define_all(texts, data_checked=data_checked)
    return [default_runtime().op(text.partition("(")[0].strip()) for text in texts]
