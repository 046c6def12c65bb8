"""Python functions as implementations: their outcomes, and that they leak nothing."""

import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from python_world import X, call, implement

import opmux


class TestOutcomes:
    def test_ok(self, world):
        @implement(world)
        def mine(x, factor, mode, *, out):
            assert (factor, mode) == (2.0, "a")
            out[:] = x * factor

        y, report = call(world)
        assert y.tolist() == (X * 2).tolist() and not report.fell_back

    def test_returning_instead_of_out(self, world):
        @implement(world)
        def mine(x, factor, mode):
            return x * factor

        out = np.empty_like(X)
        y, _ = call(world, 3.0 * X, out=out)
        assert y is out and y.tolist() == (X * 6).tolist()

    def test_returning_out_is_fine(self, world):
        implement(world)(lambda x, factor, mode, *, out: np.multiply(x, 7, out=out))
        assert call(world)[0].tolist() == (X * 7).tolist()

    def test_returning_something_else_fails(self, world):
        implement(world)(lambda x, factor, mode, *, out: 42)
        y, report = call(world, expect="twice/own.body")
        assert report.fell_back and "returned a int instead of writing to out" in report.reason
        assert y.tolist() == (X * 2).tolist()

    def test_an_exception_falls_back(self, world):
        @implement(world)
        def mine(x, factor, mode, *, out):
            out[:] = -1
            raise ZeroDivisionError("on purpose")

        y, report = call(world, expect="twice/own.body")
        assert report.fell_back and "ZeroDivisionError: on purpose" in report.reason
        assert y.tolist() == (X * 2).tolist()

    def test_an_exception_is_the_cause_when_strict(self, world):
        @implement(world)
        def mine(x, factor, mode, *, out):
            raise ZeroDivisionError("on purpose")

        with opmux.scope(strict=True, runtime=world), pytest.raises(opmux.Failed) as raised:
            world.op("twice")(X)
        cause = raised.value.__cause__
        assert isinstance(cause, ZeroDivisionError) and "on purpose" in str(raised.value)
        assert cause.__traceback__.tb_frame.f_code.co_name == "mine"

    @pytest.mark.parametrize(
        "error,outcome",
        [
            (opmux.Declined("no"), opmux.Declined),
            (opmux.Failed("no"), opmux.Failed),
            (MemoryError("no"), opmux.ResourceExhausted),
            (opmux.ResourceExhausted("no"), opmux.ResourceExhausted),
            (ValueError("no"), opmux.Failed),
            (opmux.NotFound("no"), opmux.Failed),
            (RuntimeError(), opmux.Failed),
        ],
        ids=repr,
    )
    def test_classes_of_exceptions(self, world, error, outcome):
        @implement(world)
        def mine(x, factor, mode, *, out):
            raise error

        with opmux.scope(strict=True, runtime=world), pytest.raises(outcome) as raised:
            world.op("twice")(X)
        assert type(raised.value) is outcome
        call(world, expect="twice/own.body")

    def test_not_implemented_declines(self, world):
        implement(world)(lambda x, factor, mode, *, out: NotImplemented)
        with opmux.scope(strict=True, runtime=world), pytest.raises(opmux.Declined):
            world.op("twice")(X)
        assert call(world, expect="twice/own.body")[0].tolist() == (X * 2).tolist()

    @pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
    def test_a_stop_is_not_swallowed(self, world, stop):
        @implement(world)
        def mine(x, factor, mode, *, out):
            raise stop

        with pytest.raises(stop):
            world.op("twice")(X)

    def test_the_reference_is_never_lost(self, world):
        def bad(x, factor, mode, *, out):
            raise RuntimeError

        for i in range(6):
            implement(world, f"bad{i}.v1")(bad)
        for _ in range(30):
            assert call(world, expect="twice/own.body")[0].tolist() == (X * 2).tolist()

    def test_the_reference_failing_is_an_error(self, runtime):
        runtime.define("alone(out Tensor y[N], Tensor x[N])")

        @opmux.implementation("alone", "own.body", kind="reference", runtime=runtime)
        def body(x, *, out):
            raise LookupError("nothing here")

        with pytest.raises(opmux.Failed, match="nothing here") as raised:
            runtime.op("alone")(X)
        assert isinstance(raised.value.__cause__, LookupError)

    def test_updated_arguments_do_not_fall_back(self, runtime):
        runtime.define("bump(inout Tensor x[N])")

        @opmux.implementation("bump", "own.body", kind="reference", runtime=runtime)
        def body(x):
            x += 1

        @opmux.implementation("bump", "bad.v1", priority=300, runtime=runtime)
        def bad(x):
            x += 10
            raise RuntimeError("half done")

        x = X.copy()
        with pytest.raises(opmux.Failed, match="half done"):
            runtime.op("bump")(x)
        bad.withdraw()
        with opmux.expect("bump/own.body", runtime=runtime):
            assert runtime.op("bump")(x) is None
        assert x.tolist() == (X + 11).tolist()

    def test_atomic_outputs_do(self, runtime):
        runtime.define("bump(inout Tensor x[N])")

        @opmux.implementation("bump", "own.body", kind="reference", runtime=runtime)
        def body(x):
            x += 1

        @opmux.implementation("bump", "bad.v1", priority=300, atomic_outputs=True, runtime=runtime)
        def bad(x):
            raise RuntimeError

        x = X.copy()
        with opmux.expect("bump/own.body", runtime=runtime) as calls:
            runtime.op("bump")(x)
        assert calls.fell_back and x.tolist() == (X + 1).tolist()


class TestArguments:
    def test_the_very_objects_of_the_caller(self, world):
        seen = []

        @implement(world)
        def mine(x, factor, mode, *, out):
            seen.extend([x, factor, mode, out])

        out = np.empty_like(X)
        call(world, X, 5.5, "b", out=out)
        assert seen[0] is X and seen[1:3] == [5.5, "b"] and seen[3] is out

    def test_constants_arrive_as_tensors(self, runtime):
        seen = []

        @opmux.implementation("linear", "mine.v1", priority=900, runtime=runtime)
        def mine(x, weight, bias, *, out):
            seen.append(weight)
            out[:] = x @ weight.T

        weight = np.ones((3, 8), "f4")
        with opmux.expect("linear/mine.v1", runtime=runtime):
            y = runtime.op("linear")(X[None], runtime.constant(weight))
        assert seen[0] is weight and y.tolist() == [[28, 28, 28]]

    def test_several_outputs_are_a_tuple(self, runtime):
        runtime.define("split(out Tensor a[N], out Tensor b[N], Tensor x[N])")

        @opmux.implementation("split", "mine.v1", runtime=runtime)
        def split(x):
            return x, -x

        a, b = runtime.op("split")(X)
        assert a.tolist() == X.tolist() and b.tolist() == (-X).tolist()

    def test_absent_tensors_are_none(self, runtime):
        seen = []

        @opmux.implementation("rms_norm", "mine.v1", priority=900, runtime=runtime)
        def mine(x, weight, eps, round_before_weight, *, out):
            seen.append((weight, eps, round_before_weight))

        with opmux.expect("rms_norm/mine.v1", runtime=runtime):
            runtime.op("rms_norm")(X[None])
        assert seen == [(None, 1e-6, False)]

    @pytest.mark.parametrize("size", [8, 1 << 17])
    def test_with_and_without_the_gil(self, world, size):
        implement(world)(lambda x, factor, mode: x + 1)
        x = np.zeros(size, "f4")
        assert call(world, x)[0].sum() == size

    def test_the_function_can_still_be_called(self, world):
        """The decorated object calls the function and keeps its docstring."""

        @implement(world)
        def mine(x):
            """Adds one."""
            return x + 1

        assert mine(1) == 2 and mine.__doc__ == "Adds one." and mine.id == "twice/mine.v1"
        assert repr(mine) == "<implementation twice/mine.v1>"


class TestNesting:
    def test_implementations_call_operators(self, world):
        @implement(world)
        def mine(x, factor, mode, *, out):
            with opmux.scope(require=["reference"], runtime=world):
                world.op("twice")(x, factor + 1, out=out)

        with opmux.report(world) as calls:
            y = world.op("twice")(X)
        assert calls.implementations() == ["twice/own.body", "twice/mine.v1"]
        assert y.tolist() == (X * 3).tolist()

    def test_an_inner_failure_is_the_outer_one_s_cause(self, world):
        @implement(world)
        def mine(x, factor, mode, *, out):
            world.op("twice")(x, "no number")

        with opmux.scope(strict=True, runtime=world), pytest.raises(opmux.Error) as raised:
            world.op("twice")(X)
        assert isinstance(raised.value.__cause__, opmux.InvalidArgument)

    def test_without_an_end_there_is_an_end(self, world):
        @implement(world)
        def mine(x, factor, mode, *, out):
            world.op("twice")(x, factor, out=out)

        y = world.op("twice")(X)  # the ninth nested call is refused, so the reference runs
        assert y.tolist() == (X * 2).tolist()

    def test_scopes_left_inside_do_not_hurt(self, world):
        outer = opmux.scope(prefer=["vendor"], runtime=world)

        @implement(world)
        def mine(x, factor, mode, *, out):
            out[:] = x
            outer.__exit__(None, None, None)
            gc.collect()

        with opmux.report(world) as calls:
            outer.__enter__()
            world.op("twice")(X)
        assert calls.implementation == "twice/mine.v1"


class TestRegistration:
    def test_withdraw(self, world):
        mine = implement(world)(lambda x, factor, mode: x)
        call(world)
        mine.withdraw()
        call(world, expect="twice/own.body")
        mine.withdraw()  # withdrawing again has no effect

    def test_the_same_name_twice_is_refused(self, world):
        implement(world)(lambda x, factor, mode: x)
        with pytest.raises(opmux.AlreadyExists, match="twice/mine.v1"):
            implement(world)(lambda x, factor, mode: x + 1)
        assert call(world)[0].tolist() == X.tolist()

    def test_again_after_withdrawal(self, world):
        implement(world)(lambda x, factor, mode: x).withdraw()
        implement(world)(lambda x, factor, mode: x + 1)
        assert call(world)[0].tolist() == (X + 1).tolist()

    @pytest.mark.parametrize("name", ["Mine.v1", "mine", "mine.v1.x", "default.v1", "mi ne.v1"])
    def test_names(self, world, name):
        with pytest.raises(opmux.Error):
            implement(world, name)(lambda x, factor, mode: x)

    def test_an_unknown_operator(self, world):
        with pytest.raises(opmux.NotFound):
            opmux.implementation("thrice", "mine.v1", runtime=world)(lambda x: x)

    def test_the_default_runtime(self):
        x, w = np.ones((2, 8), "f4"), np.ones(8, "f4")

        @opmux.implementation("rms_norm", "passing.v1", vendor="acme", priority=900)
        def mine(x, weight, eps, round_before_weight):
            return x * 5

        try:
            with opmux.expect("rms_norm/passing.v1"):
                assert opmux.ops.rms_norm(x, w)[0, 0] == 5
            with opmux.deny_vendors("acme"), opmux.expect("rms_norm/simd.*"):
                opmux.ops.rms_norm(x, w)
        finally:
            mine.withdraw()
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(x, w)

    def test_functions_go_with_their_registration(self, world):
        def make():
            function = lambda x, factor, mode: x  # noqa: E731
            return implement(world)(function), weakref.ref(function)

        mine, gone = make()
        call(world)
        mine.withdraw()
        del mine
        gc.collect()
        world.set_policy(opmux.policy())  # a change reclaims retired implementations
        call(world, expect="twice/own.body")
        gc.collect()
        assert gone() is None or sys.getrefcount(gone()) <= 3

    def test_register_and_withdraw_while_others_call(self, world):
        op, stop, failures = world.op("twice"), threading.Event(), []

        def caller(size):
            x = np.zeros(size, "f4")
            while not stop.is_set():
                try:
                    op(x)
                except Exception as error:
                    failures.append(error)
                    return

        with ThreadPoolExecutor(3) as pool:
            calls = [pool.submit(caller, size) for size in (8, 1 << 15, 1 << 16)]
            for i in range(40):
                mine = implement(world, f"turn{i % 3}.v1")(lambda x, factor, mode, *, out: None)
                op(X)
                mine.withdraw()
            stop.set()
            for one in calls:
                one.result(60)
        assert not failures


class TestDefine:
    def test_and_use(self):
        op = opmux.define("acme.negate(out Tensor y[N], Tensor x[N])")
        assert op.name == "acme.negate"

        @opmux.implementation("acme.negate", "own.body", kind="reference")
        def body(x):
            return -x

        try:
            with opmux.expect("acme.negate/own.body"):
                assert opmux.ops.acme.negate(X).tolist() == (-X).tolist()
            assert "negate" in dir(opmux.ops.acme)
        finally:
            body.withdraw()

    def test_the_same_text_is_the_same_operator(self):
        text = "acme.again(out Tensor y[N], Tensor x[N])"
        assert opmux.define(text).schema == opmux.define(text).schema

    def test_another_text_is_refused(self):
        opmux.define("acme.once(out Tensor y[N], Tensor x[N])")
        with pytest.raises(opmux.Error, match="acme.once"):
            opmux.define("acme.once(out Tensor y[M], Tensor x[M], int k = 1)")

    @pytest.mark.parametrize(
        "text", ["", "x", "Acme(Tensor x[N])", "acme.f(Tenso x)", "acme.g(out Tensor y[N"]
    )
    def test_nonsense(self, text):
        with pytest.raises(opmux.Error):
            opmux.define(text)


def test_a_build_is_in_the_locked_choice(world):
    @opmux.implementation("twice", "acme.built", priority=900, build="acme-1.4", runtime=world)
    def built(x, factor, mode, *, out):
        out[:] = x * factor

    call(world, expect="twice/acme.built")
    (choice,) = world.lock().choices
    assert (choice.implementation, choice.build_id) == ("twice/acme.built", "acme-1.4")


@pytest.mark.parametrize("with_torch", [False, True])
def test_a_caller_in_another_language_can_run_it(with_torch):
    """The shadow check runs the reference with arrays of numpy, or with tensors of torch."""
    program = f"""
import sys
import numpy as np
import opmux
if {with_torch}:
    import torch
runtime = opmux.create_runtime(environment=[])
runtime.define("twice(out Tensor y[N], Tensor x[N])")

@opmux.implementation("twice", "own.body", kind="reference", runtime=runtime)
def body(x, *, out):
    out[:] = x * 2

@opmux.implementation("twice", "acme.v1", priority=300, runtime=runtime)
def acme(x, *, out):
    out[:] = x + x

runtime.load_policy("opmux: 1\\nshadow: {{every: 1, share: 1.0}}\\n")
for _ in range(8):
    runtime.op("twice")(np.ones(4, "f4"))
while runtime.health().shadow.waiting:
    pass
import time
end = time.monotonic() + 60
while time.monotonic() < end:
    (found,) = runtime.health().shadow.implementations
    if found.compared + sum(found.skipped.values()) == 8:
        break
print(found.compared, found.mismatches, found.skipped)
"""
    if with_torch:
        pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "8 0 {}\n", done.stdout + done.stderr
