"""Bound plans: their calls, and the events that make them stale or revoke them."""

import threading

import numpy as np
import pytest

import opmux

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")


@pytest.fixture
def world(runtime):
    runtime.define("pick(out Tensor y[N], Tensor x[N])")
    opmux.implementation("pick", "own.body", kind="reference", runtime=runtime)(lambda x: x)
    return runtime


def implement(world, name="mine.v1", priority=200):
    return opmux.implementation("pick", name, priority=priority, runtime=world)(lambda x: x * 2)


class TestCalls:
    def test_run_what_was_decided(self):
        plan = opmux.bind("rms_norm", X, W)
        assert plan.implementation.startswith("rms_norm/simd.") and plan.state == "current"
        with opmux.expect(plan.implementation):
            y = plan(3 * X, W)
        np.testing.assert_allclose(y, X, rtol=1e-5)

    def test_out_and_keywords(self):
        plan, out = opmux.bind("rms_norm", X, W, eps=0.5, out=X.copy()), np.empty_like(X)
        with opmux.expect("rms_norm/simd.*"):
            assert plan(x=X, weight=W, eps=0.5, out=out) is out
        np.testing.assert_allclose(out, X / np.sqrt(1.5), rtol=1e-5)

    def test_any_number_of_rows(self):
        plan = opmux.bind("rms_norm", X, W)
        for rows in (1, 3, 100):
            with opmux.expect("rms_norm/simd.*"):
                assert plan(np.ones((rows, 8), "f4"), W).shape == (rows, 8)

    def test_scopes_around_bind_decide_not_those_around_calls(self):
        with opmux.require("reference"):
            plan = opmux.bind("rms_norm", X, W)
        assert plan.implementation == "rms_norm/reference.scalar"
        with opmux.prefer("default"), opmux.expect("rms_norm/reference.scalar"):
            plan(X, W)

    def test_shows_itself(self):
        plan = opmux.bind("rms_norm", X, W)
        assert repr(plan) == f"<opmux plan of {plan.implementation}>"
        assert plan.operator.name == "rms_norm" and plan.generation > 0

    def test_large_ones_give_the_gil_away(self):
        x = np.ones((64, 1024), "f4")
        plan = opmux.bind("rms_norm", x)
        with opmux.expect("rms_norm/simd.*"):
            np.testing.assert_allclose(plan(x), x, rtol=1e-5)


class TestRefusals:
    @pytest.mark.parametrize(
        "args", [(X.astype("f2"), W), (X.T.copy().T, W)], ids=["dtype", "strides"]
    )
    def test_arguments_outside(self, args):
        plan = opmux.bind("rms_norm", X, W)
        with pytest.raises(opmux.OutsidePlan):
            plan(*args)

    def test_arguments_that_the_schema_refuses(self):
        plan = opmux.bind("rms_norm", X, W)
        with pytest.raises(opmux.Error):
            plan(X, np.ones(7, "f4"), out=X.copy())
        with pytest.raises(opmux.InvalidArgument, match="no argument"):
            plan(X, wait=W)
        with pytest.raises(opmux.InvalidArgument, match="'x' must be a tensor"):
            plan(3, W)

    def test_bind_itself(self):
        with pytest.raises(opmux.InvalidArgument, match="H is 8 in x but 7 in weight"):
            opmux.bind("rms_norm", X, np.ones(7, "f4"))
        with pytest.raises(opmux.NotFound):
            opmux.bind("rms_nrm", X)
        with pytest.raises(opmux.InvalidArgument, match="overlap"):
            opmux.bind("rms_norm", X, out=X)


class TestStates:
    def test_stale_still_runs(self, world):
        plan = world.op("pick").bind(W)
        assert plan.implementation == "pick/own.body" and plan.state == "current"
        implement(world)
        assert plan.state == "stale"
        assert plan(W).tolist() == W.tolist()

    def test_refresh(self, world):
        plan = world.op("pick").bind(W)
        implement(world)
        plan.refresh()
        assert plan.state == "current" and plan.implementation == "pick/mine.v1"
        assert plan(W).tolist() == (2 * W).tolist()

    @pytest.mark.parametrize("by", ["withdrawal", "policy"])
    def test_revoked_does_not_run(self, world, by):
        mine = implement(world)
        plan = world.op("pick").bind(W)
        assert plan(W).tolist() == (2 * W).tolist()
        if by == "withdrawal":
            mine.withdraw()
        else:
            world.set_policy(opmux.policy(deny=["pick/mine.*"]))
        assert plan.state == "revoked"
        with pytest.raises(opmux.Revoked):
            plan(W)
        plan.refresh()
        assert plan.implementation == "pick/own.body" and plan(W).tolist() == W.tolist()

    def test_refresh_that_fails_leaves_it(self, world):
        mine = implement(world)
        plan = world.op("pick").bind(W)
        with opmux.scope(require=["pick/mine.*"], runtime=world):
            bound = world.op("pick").bind(W)
        mine.withdraw()
        assert bound.state == plan.state == "revoked"


class TestOneCallAtATime:
    def test_busy(self, world):
        inside, go = threading.Event(), threading.Event()

        @opmux.implementation("pick", "slow.v1", priority=900, runtime=world)
        def slow(x, *, out):
            inside.set()
            assert go.wait(30)

        plan = world.op("pick").bind(W)
        other = threading.Thread(target=plan, args=(W,))
        other.start()
        assert inside.wait(30)
        for attempt in (lambda: plan(W), plan.refresh):
            with pytest.raises(opmux.Failed, match="bind one plan per thread") as raised:
                attempt()
            assert raised.value.reason == "python.plan_busy"
        go.set()
        other.join(30)
        plan(W)

    def test_a_plan_that_calls_itself(self, world):
        errors = []

        @opmux.implementation("pick", "deep.v1", priority=900, runtime=world)
        def deep(x, *, out):
            try:
                plan(x)
            except opmux.Failed as error:
                errors.append(error.reason)

        plan = world.op("pick").bind(W)
        plan(W)
        assert errors == ["python.plan_busy"]

    def test_outlives_its_names(self):
        made = opmux.create_runtime(environment=[])
        plan = made.op("rms_norm").bind(X, W)
        del made
        np.testing.assert_allclose(plan(X, W), X, rtol=1e-5)
        assert plan.implementation.startswith("rms_norm/simd.")
