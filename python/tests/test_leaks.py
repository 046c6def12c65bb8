"""Leaks: memory stays constant, and calls release every reference that they take."""

import contextlib
import gc
import os
import sys

import numpy as np
import pytest

import opmux

torch = pytest.importorskip("torch")
SHORT, LONG = 100_000, 1_000_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows_by(once, count, batch=2000):
    """Bytes by which memory grows over `count` calls of `once`, after a tenth as many to fill
    caches."""
    for _ in range(count // 10):
        once()
    gc.collect()
    before = resident()
    for _ in range(count // batch):
        for _ in range(batch):
            once()
    gc.collect()
    return resident() - before


def make(kind):
    """A function to repeat, and its cost relative to a plain call."""
    x, w, out = np.ones((4, 8), "f4"), np.ones(8, "f4"), np.empty((4, 8), "f4")
    tx, tw, tout = torch.ones(4, 8), torch.ones(8), torch.empty(4, 8)
    runtime = opmux.create_runtime(environment=[])
    function = opmux.ops.rms_norm
    if kind == "out":
        return lambda: function(tx, tw, out=tout), 1
    if kind == "allocates":
        return lambda: function(tx, tw), 2
    if kind == "numpy":
        return lambda: function(x, w, out=out), 2
    if kind == "keywords":
        return lambda: function(weight=tw, x=tx, eps=0.5, out=tout), 1
    if kind == "errors":

        def fails():
            with contextlib.suppress(opmux.InvalidArgument):
                function(x, w[:7])

        return fails, 5
    if kind == "wrong types":

        def refuses():
            for bad in (3, "x", None, object()):
                with contextlib.suppress(opmux.InvalidArgument):
                    function(bad, out=out)

        return refuses, 10
    if kind == "scopes":

        def enters():
            with opmux.require("reference"):
                function(tx, tw, out=tout)

        return enters, 10
    if kind == "reports":

        def reports():
            with opmux.expect("rms_norm/simd.*"):
                function(tx, tw, out=tout)

        return reports, 20
    if kind == "plans":
        plan = opmux.bind("rms_norm", tx, tw, out=tout)
        return lambda: plan(tx, tw, out=tout), 1
    if kind == "binding":
        return lambda: opmux.bind("rms_norm", tx, tw, out=tout), 50
    if kind == "explaining":
        return lambda: str(opmux.explain("rms_norm", tx, tw)), 200
    if kind == "shapes":
        shapes = [np.ones((n % 97 + 1, n % 13 + 1), "f4") for n in range(500)]
        state = [0]

        def walks():
            state[0] = (state[0] + 1) % len(shapes)
            function(shapes[state[0]])

        return walks, 5
    runtime.define("pick(out Tensor y[N], Tensor x[N])")

    @opmux.implementation("pick", "own.body", kind="reference", runtime=runtime)
    def body(x, *, out):
        pass

    pick = runtime.op("pick").function
    if kind == "python":
        return lambda: pick(w, out=out[0]), 3
    if kind == "python fails":

        @opmux.implementation("pick", "bad.v1", priority=200, runtime=runtime)
        def bad(x, *, out):
            raise ValueError("no")

        def falls_back():
            pick(w, out=out[0])

        return falls_back, 20
    if kind == "registering":

        def turns():
            opmux.implementation("pick", "turn.v1", runtime=runtime)(lambda x: x).withdraw()

        return turns, 500
    if kind == "constants":
        weight = torch.ones(16, 32)
        rows = torch.ones(8, 32)
        return lambda: opmux.ops.linear(rows, opmux.constant(weight)), 50
    if kind == "parameters":
        rows = torch.ones(8, 32)

        def forgets():
            with torch.no_grad():
                opmux.ops.linear(rows, torch.nn.Parameter(torch.ones(16, 32)))

        return forgets, 50
    raise AssertionError(kind)


KINDS = [
    "out", "allocates", "numpy", "keywords", "errors", "wrong types", "scopes", "reports", "plans",
    "binding", "explaining", "shapes", "python", "python fails", "registering", "constants",
    "parameters",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_flat(kind):
    once, dear = make(kind)
    count = max(SHORT // 4 // dear, 100)
    assert grows_by(once, count, min(2000, count)) < 1_500_000


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_flat_for_long(kind):
    once, dear = make(kind)
    assert grows_by(once, max(LONG // dear, 10_000)) < 4_000_000


def counts(*objects):
    return [sys.getrefcount(one) for one in objects]


class Lender:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)


def tensor(kind, *shape):
    if kind == "torch":
        return torch.ones(shape)
    if kind == "parameter":
        return torch.nn.Parameter(torch.ones(shape), requires_grad=False)
    if kind == "lender":
        return Lender(np.ones(shape, "f4"))
    if kind == "constant":
        return opmux.constant(torch.ones(shape))
    return np.ones(shape, "f4")


@pytest.mark.parametrize("kind", ["torch", "numpy", "parameter", "lender", "constant"])
class TestReferences:
    """The reference count of every object is the same before and after a call."""

    def repeat(self, once, *objects, times=50):
        once()
        before = counts(*objects)
        for _ in range(times):
            once()
        assert counts(*objects) == before

    def test_of_inputs(self, kind):
        x, w, out, eps = tensor(kind, 4, 8), tensor(kind, 8), np.empty((4, 8), "f4"), 0.123
        with opmux.expect("rms_norm/simd.*"):
            self.repeat(lambda: opmux.ops.rms_norm(x, w, eps, out=out), x, w, out, eps)
            self.repeat(lambda: opmux.ops.rms_norm(x=x, weight=w, out=(out,)), x, w, out)

    def test_of_outputs(self, kind):
        x, out = np.ones((4, 8), "f4"), tensor(kind, 4, 8)
        if kind == "constant":
            with pytest.raises(opmux.InvalidArgument, match="is a constant"):
                opmux.ops.rms_norm(x, out=out)
            return
        with opmux.expect("rms_norm/simd.*"):
            self.repeat(lambda: opmux.ops.rms_norm(x, out=out), x, out)
        returned = opmux.ops.rms_norm(x, out=out)
        assert returned is out

    def test_of_what_is_refused(self, kind):
        x, w, wrong = tensor(kind, 4, 8), tensor(kind, 8), tensor(kind, 7)
        out = np.empty((4, 8), "f4")
        out.flags.writeable = False

        def fails(*args, **kwargs):
            try:
                opmux.ops.rms_norm(*args, **kwargs)
            except opmux.InvalidArgument:
                return
            raise AssertionError("it was taken")

        for attempt in (
            lambda: fails(x, wrong, out=np.empty((4, 8), "f4")),
            lambda: fails(x, w, out=out),
            lambda: fails(x, w, "no number", out=out),
            lambda: fails(x, w, weight=w),
            lambda: fails(x, nonsense=w),
            lambda: fails(3, w),
            lambda: fails(x, w, out=(out, out)),
        ):
            self.repeat(attempt, x, w, wrong, out)

    def test_in_scopes_and_reports(self, kind):
        x, out = tensor(kind, 4, 8), np.empty((4, 8), "f4")
        scope = opmux.require("reference")

        def once():
            with scope, opmux.report() as calls:
                opmux.ops.rms_norm(x, out=out)
            assert calls.implementation == "rms_norm/reference.scalar"

        self.repeat(once, x, out, scope)

    def test_of_plans(self, kind):
        x, out = tensor(kind, 4, 8), np.empty((4, 8), "f4")
        plan = opmux.bind("rms_norm", x, out=out)
        with opmux.expect("rms_norm/simd.*"):
            self.repeat(lambda: plan(x, out=out), x, out, plan)
        self.repeat(lambda: opmux.bind("rms_norm", x, out=out), x, out)

    def test_of_explanations(self, kind):
        x = tensor(kind, 4, 8)
        self.repeat(lambda: opmux.explain("rms_norm", x), x)

    @pytest.mark.parametrize("end", ["ok", "fails", "declines", "returns"])
    def test_of_python_implementations(self, kind, end):
        runtime = opmux.create_runtime(environment=[], sink=None)
        runtime.define("pick(out Tensor y[N], Tensor x[N])")
        opmux.implementation("pick", "own.body", kind="reference", runtime=runtime)(
            lambda x, *, out: None
        )

        def mine(x, *, out):
            if end == "fails":
                raise ValueError("no")
            if end == "declines":
                raise opmux.Declined("no")
            return out if end == "returns" else None

        opmux.implementation("pick", "mine.v1", priority=200, runtime=runtime)(mine)
        x, out, pick = tensor(kind, 8), np.empty(8, "f4"), runtime.op("pick")
        if kind == "constant":
            x = runtime.constant(torch.ones(8))
        with opmux.expect("pick/*", runtime=runtime):
            self.repeat(lambda: pick(x, out=out), x, out, mine)


def test_types_and_functions_are_not_counted_up():
    x = torch.ones(4, 8)
    objects = (torch.Tensor, opmux.ops.rms_norm, opmux.ops.rms_norm.__self__, None, True)
    opmux.ops.rms_norm(x)
    before = counts(*objects[:3])
    with opmux.expect("rms_norm/simd.*"):
        for _ in range(100):
            opmux.ops.rms_norm(x)
    after = counts(*objects[:3])
    assert all(abs(a - b) <= 2 for a, b in zip(after, before, strict=True))


def test_runtimes_go():
    def once():
        made = opmux.create_runtime(environment=[], backends=False)
        made.define("pick(out Tensor y[N], Tensor x[N])")
        opmux.implementation("pick", "own.body", kind="reference", runtime=made)(lambda x: x)
        made.op("pick")(np.ones(8, "f4"))

    assert grows_by(once, 200, 20) < 4_000_000
