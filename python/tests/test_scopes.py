"""Scopes: they nest, end, follow tasks and threads, and do not leak."""

import asyncio
import contextvars
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import opmux

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")


def ran(op="rms_norm", *args, runtime=None):
    """The id of the implementation that a call runs in the current scope."""
    function = getattr(opmux.ops, op) if runtime is None else runtime.op(op)
    with opmux.report(runtime) as calls:
        function(*(args or (X, W)))
    return calls.implementation


@pytest.fixture
def three(runtime):
    """A runtime whose operator `pick` has implementations of three vendors and a reference."""
    runtime.define("pick(out Tensor y[N], Tensor x[N])")
    priorities = {"red.v1": 100, "green.v1": 90, "blue.v1": 80, "own.body": 50}
    for name, priority in priorities.items():
        kind = "reference" if name == "own.body" else "vendor"
        opmux.implementation("pick", name, kind=kind, priority=priority, runtime=runtime)(
            lambda x, *, out: None
        )
    return runtime


def picked(runtime):
    return ran("pick", W, runtime=runtime).partition("/")[2]


class TestKinds:
    def test_without_a_scope(self, three):
        assert picked(three) == "red.v1"

    def test_prefer(self, three):
        with opmux.scope(prefer=["pick/blue.*"], runtime=three):
            assert picked(three) == "blue.v1"
        assert picked(three) == "red.v1"

    def test_prefer_falls_back_to_others(self, three):
        with opmux.scope(prefer=["pick/absent.*"], runtime=three):
            assert picked(three) == "red.v1"

    def test_require(self, three):
        with opmux.scope(require=["reference"], runtime=three):
            assert picked(three) == "own.body"

    def test_require_without_a_match_is_an_error(self, three):
        with opmux.scope(require=["pick/absent.*"], runtime=three):
            with pytest.raises(opmux.NoCandidate, match="pick/red.v1: policy"):
                three.op("pick")(W)
        assert picked(three) == "red.v1"

    def test_deny(self, three):
        with opmux.scope(deny=["pick/red.*"], runtime=three):
            assert picked(three) == "green.v1"

    def test_allow(self, three):
        with opmux.scope(allow=["pick/blue.*", "reference"], runtime=three):
            assert picked(three) == "blue.v1"

    def test_allow_vendors(self, three):
        with opmux.scope(allow_vendors=["green"], runtime=three):
            assert picked(three) == "green.v1"

    def test_deny_vendors(self, three):
        with opmux.scope(deny_vendors=["red", "green"], runtime=three):
            assert picked(three) == "blue.v1"

    def test_per_op(self, three):
        with opmux.scope(per_op={"pick": ["pick/blue.*"]}, runtime=three):
            assert picked(three) == "blue.v1"

    @pytest.mark.parametrize(
        "scope,expected",
        [
            (lambda: opmux.require("reference"), "rms_norm/reference.scalar"),
            (lambda: opmux.prefer("reference"), "rms_norm/reference.scalar"),
            (lambda: opmux.deny("rms_norm/simd.*"), "rms_norm/reference.scalar"),
            (lambda: opmux.deny("default"), "rms_norm/reference.scalar"),
            (lambda: opmux.prefer("rms_norm/simd.avx2"), "rms_norm/simd.avx2"),
            (lambda: opmux.require("impl:rms_norm/simd.sse4"), "rms_norm/simd.sse4"),
            (lambda: opmux.policy_scope(opmux.policy(require=["reference"])),
             "rms_norm/reference.scalar"),
        ],
    )  # fmt: skip
    def test_functions_of_the_module(self, scope, expected):
        before = ran()
        with scope():
            assert ran() == expected
        assert ran() == before

    def test_vendors_of_the_module(self):
        args = np.ones((9, 24), "f4"), np.ones((16, 24), "f4")
        with opmux.allow_vendors("nobody"):
            assert "simd" in ran("linear", *args) or "reference" in ran("linear", *args)
        with opmux.deny_vendors("intel", "openblas"):
            assert "simd" in ran("linear", *args) or "reference" in ran("linear", *args)

    def test_strict_returns_the_first_failure(self, three):
        @opmux.implementation("pick", "bad.v1", priority=500, runtime=three)
        def bad(x, *, out):
            raise ValueError("broken")

        with opmux.report(three) as calls:
            three.op("pick")(W)
        assert calls.implementation == "pick/red.v1" and calls.fell_back
        with opmux.scope(strict=True, runtime=three), pytest.raises(opmux.Failed):
            three.op("pick")(W)
        with opmux.scope(strict=True, runtime=three), opmux.scope(strict=False, runtime=three):
            assert picked(three) == "red.v1"

    def test_strict_of_the_module(self):
        @opmux.implementation("rms_norm", "strictly.v1", priority=900)
        def bad(x, weight, eps, round_before_weight, *, out):
            raise opmux.Declined("not now")

        try:
            with opmux.strict(), pytest.raises(opmux.Declined, match="not now"):
                opmux.ops.rms_norm(X, W)
            with opmux.strict(False):
                assert "simd" in ran()
        finally:
            bad.withdraw()


class TestNesting:
    def test_the_innermost_preference_wins(self, three):
        with opmux.scope(prefer=["pick/green.*"], runtime=three):
            with opmux.scope(prefer=["pick/blue.*"], runtime=three):
                assert picked(three) == "blue.v1"
            assert picked(three) == "green.v1"
        assert picked(three) == "red.v1"

    def test_denials_add_up(self, three):
        with opmux.scope(deny=["pick/red.*"], runtime=three):
            with opmux.scope(deny=["pick/green.*"], runtime=three):
                assert picked(three) == "blue.v1"
            assert picked(three) == "green.v1"

    def test_two_requires_intersect(self, three):
        with opmux.scope(require=["vendor"], runtime=three):
            with opmux.scope(require=["pick/blue.*", "reference"], runtime=three):
                assert picked(three) == "blue.v1"

    def test_exceptions_end_scopes(self, three):
        with pytest.raises(KeyError), opmux.scope(require=["reference"], runtime=three):
            raise KeyError
        assert picked(three) == "red.v1"

    def test_one_object_again_and_again(self, three):
        blue = opmux.scope(prefer=["pick/blue.*"], runtime=three)
        for _ in range(3):
            with blue:
                assert picked(three) == "blue.v1"
            assert picked(three) == "red.v1"

    def test_one_object_inside_itself(self, three):
        blue = opmux.scope(prefer=["pick/blue.*"], runtime=three)
        with blue, opmux.scope(prefer=["pick/green.*"], runtime=three):
            with blue:
                assert picked(three) == "blue.v1"
            assert picked(three) == "green.v1"
        assert picked(three) == "red.v1"

    def test_a_bad_policy_enters_nothing(self, three):
        with pytest.raises(opmux.Error):
            with opmux.scope(require=["no such/**/token"], runtime=three):
                pass
        assert picked(three) == "red.v1"

    def test_a_token_is_no_list(self):
        with pytest.raises(TypeError, match="deny must be a list of tokens"):
            opmux.policy(deny="reference")

    def test_runtimes_do_not_meet(self, three):
        other = opmux.create_runtime(environment=[])
        with opmux.scope(require=["reference"], runtime=other):
            assert picked(three) == "red.v1"
            assert ran(runtime=other) == "rms_norm/reference.scalar"
            with opmux.scope(prefer=["pick/blue.*"], runtime=three):
                assert picked(three) == "blue.v1"
                assert ran(runtime=other) == "rms_norm/reference.scalar"
            assert "simd" in ran()

    def test_explain_and_bind_see_them(self):
        with opmux.require("reference"):
            assert opmux.explain("rms_norm", X, W).chosen == "rms_norm/reference.scalar"
            assert opmux.bind("rms_norm", X, W).implementation == "rms_norm/reference.scalar"
        assert "simd" in opmux.explain("rms_norm", X, W).chosen

    def test_many_different_ones(self, three):
        for i in range(600):
            with opmux.scope(prefer=[f"pick/p{i}.*", "pick/blue.*"], runtime=three):
                assert picked(three) == "blue.v1"


class TestThreadScope:
    def test_applies_and_ends(self):
        with opmux.thread_scope(require=["reference"]):
            y = opmux.ops.rms_norm(X, W)
            assert ran() == "rms_norm/reference.scalar"
        assert "simd" in ran() and y.shape == X.shape

    def test_scopes_inside_build_on_it(self):
        with opmux.thread_scope(require=["reference"]):
            with opmux.options(tag="inner"):
                assert ran() == "rms_norm/reference.scalar"
            with opmux.deny("rms_norm/simd.*"):
                assert ran() == "rms_norm/reference.scalar"

    def test_is_there_without_any_other_scope(self):
        before = {s.implementation: s.calls for s in opmux.stats()}
        with opmux.thread_scope(require=["reference"]):
            opmux.ops.rms_norm(X, W)
        after = {s.implementation: s.calls for s in opmux.stats()}
        name = "rms_norm/reference.scalar"
        assert after[name] == before.get(name, 0) + 1

    def test_one_object_inside_itself_and_again(self):
        reference = opmux.thread_scope(require=["reference"])
        for _ in range(2):
            with reference:
                with reference:
                    assert ran() == "rms_norm/reference.scalar"
                assert ran() == "rms_norm/reference.scalar"
            assert "simd" in ran()

    def test_other_threads_are_not_concerned(self):
        with opmux.thread_scope(require=["reference"]), ThreadPoolExecutor(1) as pool:
            assert "simd" in pool.submit(ran).result()


class TestReports:
    def test_fields(self):
        with opmux.report() as calls:
            opmux.ops.rms_norm(X, W)
            opmux.ops.softmax(X)
        assert len(calls) == 2 and [c.op for c in calls] == ["rms_norm", "softmax"]
        first = calls[0]
        assert first.implementation.startswith("rms_norm/simd.") and first.outcome == "ok"
        assert not first.fell_back and first.reason == "" and first.generation > 0
        assert calls.op == "softmax" and calls[-1].op == "softmax" and len(calls[0:2]) == 2
        assert "rms_norm/simd" in repr(first)

    def test_the_second_call_is_cached(self):
        with opmux.report() as calls:
            for _ in range(2):
                opmux.ops.rms_norm(X, W)
        assert calls[1].cached and calls[1].run_ns > 0 and calls[1].transform_ns == 0

    def test_failures_are_reported(self):
        with opmux.report() as calls, pytest.raises(opmux.InvalidArgument):
            opmux.ops.embedding(X, np.array([7]))
        assert calls.outcome == "invalid_argument"

    def test_everyone_around_gets_them(self):
        with opmux.report() as outer:
            with opmux.require("reference"), opmux.report() as inner:
                opmux.ops.rms_norm(X, W)
            opmux.ops.rms_norm(X, W)
        assert len(inner) == 1 and len(outer) == 2
        assert outer.implementations()[0] == "rms_norm/reference.scalar"

    def test_nobody_called(self):
        with opmux.report() as calls:
            pass
        assert len(calls) == 0
        with pytest.raises(AttributeError, match="no call was made"):
            calls.implementation

    def test_plans_report_too(self):
        plan = opmux.bind("rms_norm", X, W)
        with opmux.expect("rms_norm/simd.*") as calls:
            plan(X, W)
        assert len(calls) == 1 and calls.implementation == plan.implementation


class TestExpect:
    def test_agrees(self):
        with opmux.expect("rms_norm/simd.*", "softmax/*"):
            opmux.ops.rms_norm(X, W)
            opmux.ops.softmax(X)

    def test_another_one_ran(self):
        with pytest.raises(opmux.Unexpected, match="expected rms_norm/acme.*, but rms_norm/simd"):
            with opmux.expect("rms_norm/acme.*"):
                opmux.ops.rms_norm(X, W)

    def test_no_call_was_made(self):
        with pytest.raises(AssertionError, match="no call was made"), opmux.expect("*"):
            pass

    def test_an_exception_inside_is_not_hidden(self):
        with pytest.raises(ZeroDivisionError), opmux.expect("rms_norm/acme.*"):
            opmux.ops.rms_norm(X, W)
            raise ZeroDivisionError


_KINDS = ["reference.scalar", "simd.avx2", "simd.sse4", "simd.avx512"]


class TestTasksAndThreads:
    """Each call runs the implementation of its scope, independent of concurrent scopes."""

    def test_64_tasks(self):
        random.seed(3)

        async def task(kind, rounds=25):
            with opmux.require(f"*/{kind}"):
                for _ in range(rounds):
                    assert ran() == f"rms_norm/{kind}"
                    await asyncio.sleep(0)
                    with opmux.require(f"rms_norm/{kind}"):
                        await asyncio.sleep(0)
                        assert ran() == f"rms_norm/{kind}"
            return ran()

        async def everyone():
            kinds = [random.choice(_KINDS) for _ in range(64)]
            return await asyncio.gather(*(task(kind) for kind in kinds))

        assert set(asyncio.run(everyone())) == {ran()}

    def test_64_threads(self):
        barrier = threading.Barrier(8)
        large = np.ones((64, 512), "f4")  # large enough that calls release the GIL

        def work(i):
            kind = _KINDS[i % 4]
            if i < 8:
                barrier.wait()
            with opmux.require(f"*/{kind}"):
                return {ran("rms_norm", large if j % 2 else X) for j in range(20)} == {
                    f"rms_norm/{kind}"
                }

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(64)))
        assert ran() == "rms_norm/simd.avx512" or "simd" in ran()

    def test_one_object_shared_by_tasks(self):
        shared = opmux.require("reference")

        async def task(i):
            for _ in range(10):
                with shared:
                    await asyncio.sleep(0)
                    assert ran() == "rms_norm/reference.scalar"
                assert "simd" in ran()
                for _ in range(i % 3):
                    await asyncio.sleep(0)

        async def everyone():
            await asyncio.gather(*(task(i) for i in range(16)))

        asyncio.run(everyone())

    def test_one_object_shared_by_threads(self):
        shared, barrier = opmux.require("reference"), threading.Barrier(4)

        def work(_):
            for _ in range(20):
                with shared:
                    barrier.wait()
                    inside = ran()
                barrier.wait()
                assert inside == "rms_norm/reference.scalar" and "simd" in ran()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))

    def test_a_task_keeps_the_scope_it_was_made_in(self):
        async def main():
            go = asyncio.Event()

            async def later():
                await go.wait()
                return ran()

            with opmux.require("reference"):
                inside = asyncio.create_task(later())
            outside = asyncio.create_task(later())
            go.set()
            return await inside, await outside

        inside, outside = asyncio.run(main())
        assert inside == "rms_norm/reference.scalar" and "simd" in outside

    def test_a_copied_context_keeps_it_too(self):
        with opmux.require("reference"):
            context = contextvars.copy_context()
        assert "simd" in ran() and context.run(ran) == "rms_norm/reference.scalar"

    def test_new_threads_begin_without(self):
        with opmux.require("reference"), ThreadPoolExecutor(1) as pool:
            assert "simd" in pool.submit(ran).result()

    def test_to_thread_carries_it(self):
        async def main():
            with opmux.require("reference"):
                return await asyncio.to_thread(ran)

        assert asyncio.run(main()) == "rms_norm/reference.scalar"

    def test_generators_leave_when_they_are_closed(self):
        def numbers():
            with opmux.require("reference"):
                yield ran()

        made = numbers()
        assert next(made) == "rms_norm/reference.scalar"
        made.close()
        assert "simd" in ran()


@pytest.mark.truth
@pytest.mark.parametrize("kind", [opmux.scope, opmux.thread_scope])
def test_fields_besides_a_policy_are_refused(kind):
    with pytest.raises(TypeError, match="a policy or its fields, not both: strict"):
        kind(opmux.policy(prefer=["reference"]), strict=True)
