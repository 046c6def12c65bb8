"""The subjects of `python -m opmux.bench`: each is a call, timed in a separate loop."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from . import _core, _torch_reader
from ._dispatchable import dispatchable
from ._implementations import define, implementation
from ._ops import bind, op
from ._runtime import default_runtime
from ._scopes import prefer

_LOOP = """
def loop(n, f, {names}):
    for _ in range(n):
        f({call})
"""


@dataclass
class Subject:
    """A call to time. `call` is the text of its arguments, which uses the names in `given`."""

    name: str
    function: Callable[..., Any]
    call: str
    given: dict[str, Any]
    around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    number: int = 100
    rounds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Each subject gets a separate loop because CPython specializes bytecode for its callee.
        space: dict[str, Any] = {}
        exec(_LOOP.format(names=", ".join(self.given), call=self.call), space)
        self._loop = space["loop"]

    def run(self) -> float:
        """Returns the mean nanoseconds per call over a batch of `number` calls."""
        with self.around():
            self._loop(20, self.function, **self.given)
            begun = time.perf_counter_ns()
            self._loop(self.number, self.function, **self.given)
            return (time.perf_counter_ns() - begun) / self.number


def use_module_reader() -> str:
    """Loads the torch reader, compiling it first if needed; returns the reason if it cannot be
    used, else an empty string."""
    if reason := _torch_reader.use():
        if "not built" not in reason and "built for another" not in reason:
            return reason
        _torch_reader.build()
        return _torch_reader.use()
    return ""


@contextlib.contextmanager
def _by_exchange() -> Iterator[None]:
    _core.use_torch_reader(None)
    try:
        yield
    finally:
        _torch_reader.use()


_kept: list[Any] = []  # torch libraries, whose operators exist only while the library lives


def _write_nothing(x: Any, w: Any, *, out: Any) -> None:
    return


def calls() -> list[Subject]:
    """Subjects that call each entry point with the same three torch tensors and `out=`."""
    import torch

    define("bench_native(out Tensor y[N, M], Tensor x[N, M], Tensor w[M])")
    define("bench_python(out Tensor y[N, M], Tensor x[N, M], Tensor w[M])")
    _core.implement_nothing(default_runtime(), "bench_native/bench.nothing").keep()
    implementation("bench_python", "bench.nothing", kind="default")(_write_nothing)
    x, w, y = torch.zeros(8, 16), torch.zeros(16), torch.zeros(8, 16)
    given = {"x": x, "w": w, "y": y}
    native, plan = op("bench_native").function, bind("bench_native", x, w, out=y)
    library: Any = torch.library.Library("opmux_bench", "DEF")  # type: ignore[no-untyped-call]
    library.define("nothing(Tensor x, Tensor w, Tensor(a!) out) -> ()")
    library.impl("nothing", lambda x, w, out: None, "CPU")
    _kept.append(library)
    torch_op = torch.ops.opmux_bench.nothing.default
    out = "x, w, out=y"
    return [
        Subject("empty FASTCALL", _core.call_nothing, out, given),
        Subject("operator, torch reader", native, out, given),
        Subject("operator, bound plan", plan.function, out, given),
        Subject("operator, bound plan as an object", plan, out, given),
        Subject("operator, scope active", native, out, given, lambda: prefer("default")),
        Subject("operator, allocates", native, "x, w", given),
        Subject("operator, Python implementation", op("bench_python").function, out, given),
        Subject("that function itself", _write_nothing, out, given),
        Subject("three bare exchange calls", _core.exchange_three, out, given),
        Subject("operator, DLPack exchange", native, out, given, _by_exchange),
        Subject("torch.ops no-op, Library.impl", torch_op, "x, w, y", given, number=50),
    ]


def _takes(q: Any, k: Any, v: Any, g: Any, beta: Any, scale: Any = None) -> tuple[bool, str | None]:
    """A verifier with as many checks as those of FLA's linear attention."""
    if q.dtype not in _takes_dtypes() or k.dtype != q.dtype or v.dtype != q.dtype:
        return False, "dtype"
    if q.dim() != 4 or k.shape != q.shape or v.shape[-1] % 16 != 0:
        return False, "shape"
    if q.shape[-1] > 128 or beta.shape[-1] != q.shape[2] or q.requires_grad:
        return False, "heads"
    if scale is not None and scale <= 0:
        return False, "scale"
    return (True, None) if q.device.type == "cpu" else (False, "device")


@functools.cache
def _takes_dtypes() -> tuple[Any, ...]:
    import torch

    return torch.float32, torch.bfloat16, torch.float16


def _attention(q: Any, k: Any, v: Any, g: Any, beta: Any, scale: Any = None) -> Any:
    return q


def dispatchables() -> list[Subject]:
    """Subjects with three backends, the first of which accepts: in opmux and in fla.backends."""
    import torch

    q = torch.zeros(1, 8, 2, 64)
    given = {"q": q, "k": q.clone(), "v": q.clone(), "g": q.clone(),
             "beta": torch.zeros(1, 8, 2)}  # fmt: skip
    call = "q, k, v, g, beta, scale=0.125"
    ours: Any = dispatchable(name="bench_dispatchable")(_attention)
    for priority, provider in ((130, "alpha"), (120, "beta"), (110, "gamma")):
        added = ours.implementation(f"{provider}.one", priority=priority)(_attention)
        added.verifier(_takes)
    return [
        Subject("the function itself", _attention, call, given),
        Subject("dispatchable, three backends", ours, call, given),
        *_of_fla(call, given),
    ]


def _of_fla(call: str, given: dict[str, Any]) -> list[Subject]:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # so that importing fla works without a GPU
    try:
        import fla.backends as theirs
    except ImportError:
        return []

    @functools.wraps(_attention)
    def body(*args: Any, **kwargs: Any) -> Any:
        return _attention(*args, **kwargs)

    function = theirs.dispatch(body)
    for priority, name in ((0, "alpha"), (1, "beta"), (2, "gamma")):
        members = {"backend_type": name, "priority": priority, "package_name": "torch",
                   "env_var": f"FLA_BENCH_{name.upper()}"}  # fmt: skip
        kind = type(name, (theirs.BaseBackend,), members)
        theirs.register(function, backend=kind, verifier=_takes)(_attention)
    return [Subject("fla.backends, three backends", function, call, given, number=30)]
