"""Policies in code: lists of tokens, rules with conditions, boosts; set, shown and reset."""

import numpy as np
import pytest

import opmux
from opmux import Boost, Condition

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")


@pytest.fixture
def world(runtime):
    runtime.define("pick(out Tensor y[..., N], Tensor x[..., N], bool fast = false, int k = 0)")
    for name, priority in (("red.v1", 100), ("green.v1", 90), ("own.body", 50)):
        kind = "reference" if name == "own.body" else "vendor"
        opmux.implementation("pick", name, kind=kind, priority=priority, runtime=runtime)(
            lambda x, fast, k, *, out: None
        )
    return runtime


def picked(world, *args, **kwargs):
    with opmux.report(world) as calls:
        world.op("pick")(*(args or (X,)), **kwargs)
    return calls.implementation.partition("/")[2]


def set_rules(world, *rules, **fields):
    world.set_policy(opmux.policy(rules=rules, **fields))


class TestForTheWholeRuntime:
    @pytest.mark.parametrize(
        "fields,expected",
        [
            ({}, "red.v1"),
            ({"prefer": ["reference"]}, "own.body"),
            ({"rules": [opmux.rule(op="pick", require=["pick/green.*"])]}, "green.v1"),
            ({"deny": ["vendor:red"]}, "green.v1"),
            ({"deny": ["vendor"]}, "own.body"),
            ({"allow": ["reference"]}, "own.body"),
            ({"allow_vendors": ["green"]}, "green.v1"),
            ({"deny_vendors": ["red"]}, "green.v1"),
            ({"per_op": {"pick": ["impl:pick/green.v1"]}}, "green.v1"),
        ],
        ids=str,
    )
    def test_lists(self, world, fields, expected):
        world.set_policy(opmux.policy(**fields))
        assert picked(world) == expected
        world.reset_policy()
        assert picked(world) == "red.v1"

    def test_is_shown(self, world):
        world.set_policy(opmux.policy(prefer=["reference"], deny=["vendor:red"], strict=True))
        shown = world.policy()
        assert shown.prefer == ["reference"] and shown.deny == ["vendor:red"] and shown.strict

    def test_a_scope_has_the_last_word(self, world):
        world.set_policy(opmux.policy(prefer=["reference"]))
        with opmux.scope(prefer=["pick/green.*"], runtime=world):
            assert picked(world) == "green.v1"
        assert picked(world) == "own.body"

    def test_denials_of_both_add_up(self, world):
        world.set_policy(opmux.policy(deny=["pick/red.*"]))
        with opmux.scope(deny=["pick/green.*"], runtime=world):
            assert picked(world) == "own.body"

    @pytest.mark.parametrize("bad", ["pick/", "no such token", "impl:x", "**", ""])
    def test_bad_tokens_change_nothing(self, world, bad):
        world.set_policy(opmux.policy(deny=["pick/red.*"]))
        with pytest.raises(opmux.Error):
            world.set_policy(opmux.policy(deny=[bad]))
        assert picked(world) == "green.v1"

    def test_nothing_left_is_refused(self, world):
        with pytest.raises(opmux.Error):
            set_rules(world, opmux.rule(op="pick", deny=["*/*"]))
        assert picked(world) == "red.v1"

    def test_functions_of_the_module(self):
        opmux.set_policy(opmux.policy(require=["reference"]))
        with opmux.expect("rms_norm/reference.scalar"):
            opmux.ops.rms_norm(X, W)
        assert opmux.policy_in_force().require == ["reference"]
        opmux.reset_policy()
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(X, W)

    def test_given_at_creation(self):
        made = opmux.create_runtime(environment=[], policy=opmux.policy(require=["reference"]))
        with opmux.expect("rms_norm/reference.scalar", runtime=made):
            made.op("rms_norm")(X, W)


class TestConditions:
    @pytest.mark.parametrize(
        "when,yes,no",
        [
            (Condition.dim("N", ">", 4), X, X[:, :4]),
            (Condition.dim("N", "==", 8), X, X[:, :4]),
            (Condition.dim("N", "!=", 4), X, X[:, :4]),
            (Condition.dim("N", "<=", 4), X[:, :4], X),
            (Condition.dim("N", "%", 8), X, X[:, :4]),
            (Condition.rows(">=", 4), X, X[:2]),
            (Condition.rows("<", 3), X[:2], X),
            (Condition.dtype("x", "f32"), X, X.astype("f8")),
            (Condition.rank("x", "==", 2), X, X[0]),
            (Condition.contiguous("x"), X, X[:, ::2]),
            (Condition.dim("N", ">", 4) & Condition.rows(">", 2), X, X[:2]),
            (Condition.dim("N", ">", 99) | Condition.rows(">", 2), X, X[:2]),
            (~Condition.rows(">", 2), X[:2], X),
        ],
        ids=str,
    )
    def test_of_tensors(self, world, when, yes, no):
        set_rules(world, opmux.rule(op="pick", when=when, prefer=["reference"]))
        assert (picked(world, yes), picked(world, no)) == ("own.body", "red.v1")

    @pytest.mark.parametrize(
        "when,kwargs",
        [
            (Condition.scalar("fast", "==", 1), {"fast": True}),
            (Condition.scalar("k", ">", 3), {"k": 4}),
        ],
        ids=str,
    )
    def test_of_scalars(self, world, when, kwargs):
        set_rules(world, opmux.rule(op="pick", when=when, prefer=["reference"]))
        assert picked(world, X, **kwargs) == "own.body" and picked(world, X) == "red.v1"

    def test_of_absence(self, runtime):
        rule = opmux.rule(op="rms_norm", when=Condition.present("weight"), require=["reference"])
        runtime.set_policy(opmux.policy(rules=[rule]))
        with opmux.expect("rms_norm/reference.*", runtime=runtime):
            runtime.op("rms_norm")(X, W)
        with opmux.expect("rms_norm/simd.*", runtime=runtime):
            runtime.op("rms_norm")(X)

    def test_are_shown(self):
        text = str(Condition.dim("N", ">", 4) & ~Condition.dtype("x", "bf16"))
        assert "N > 4" in text and "bf16" in text and "<Condition" in repr(Condition.rows("<", 3))

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Condition.dim("N", "=>", 4),
            lambda: Condition.dtype("x", "f99"),
            lambda: Condition.rows("~", 1),
        ],
    )
    def test_nonsense(self, make):
        with pytest.raises(ValueError):
            make()

    def test_of_dimensions_that_the_operator_lacks_do_not_apply(self, world):
        when = Condition.dim("HQ", ">", 0)
        set_rules(world, opmux.rule(op="*", when=when, prefer=["reference"]))
        assert picked(world) == "red.v1"

    @pytest.mark.parametrize("op", ["rms_norm", "rms_*", "*"])
    def test_one_that_no_operator_can_answer_is_refused(self, op):
        rule = opmux.rule(op=op, when=Condition.dim("NOWHERE", ">", 4), prefer=["vendor"])
        for attempt in (lambda: opmux.set_policy(opmux.policy(rules=[rule])),
                        lambda: opmux.scope(rules=[rule]).__enter__()):  # fmt: skip
            with pytest.raises(opmux.InvalidArgument, match="when: the condition uses") as raised:
                attempt()
            assert raised.value.reason == "policy.when"


class TestRules:
    def test_boosts(self, world):
        boost = [Boost("pick/green.*", multiply=1.6)]
        set_rules(world, opmux.rule(op="pick", boost=boost))
        assert picked(world) == "green.v1"
        set_rules(world, opmux.rule(op="pick", boost=[Boost("pick/green.*", add=5)]))
        assert picked(world) == "red.v1"
        set_rules(world, opmux.rule(op="pick", boost=[Boost("pick/green.*", add=15)]))
        assert picked(world) == "green.v1"

    def test_order_is_exclusive(self, world):
        set_rules(world, opmux.rule(op="pick", order=["pick/green.*", "reference"]))
        assert picked(world) == "green.v1"
        with opmux.scope(deny=["pick/green.*"], runtime=world):
            assert picked(world) == "own.body"

    def test_rank_decides(self, world):
        set_rules(world, opmux.rule(op="pick", prefer=["reference"]),
                  opmux.rule(op="pick", prefer=["pick/green.*"], rank=90))  # fmt: skip
        assert picked(world) == "green.v1"

    def test_explain_names_rule_reason_and_owner(self, world):
        set_rules(world, opmux.rule(name="broken-driver", op="pick", deny=["pick/red.*"],
                                    reason="wrong sums", owner="kernels@example.com"))  # fmt: skip
        found = next(c for c in opmux.explain(world.op("pick"), X).candidates if "red" in c.id)
        assert found.code == "policy.denied" and "broken-driver" in found.reason
        assert "kernels@example.com" in found.reason

    def test_other_operators_are_not_concerned(self, world):
        set_rules(world, opmux.rule(op="softmax", require=["reference"]))
        assert picked(world) == "red.v1"
        with opmux.expect("softmax/reference.*", runtime=world):
            world.op("softmax")(X)

    def test_unknown_fields(self):
        with pytest.raises(TypeError, match="a rule has no field 'prefers'"):
            opmux.rule(prefers=["vendor"])

    def test_strict_for_one_operator(self, world):
        @opmux.implementation("pick", "bad.v1", priority=900, runtime=world)
        def bad(x, fast, k, *, out):
            raise ValueError

        set_rules(world, opmux.rule(op="pick", strict=True))
        with pytest.raises(opmux.Failed):
            world.op("pick")(X)


@pytest.mark.truth
class TestWhatCanRun:
    MISSING = "opmux: 1\nrules: [{name: r, op: pick, require: [pick/absent.v1]}]\n"

    def test_a_policy_that_leaves_nothing_is_refused_unless_it_says_allow_none(self, world):
        only = opmux.policy(require=["pick/absent.v1"])
        with pytest.raises(opmux.InvalidArgument) as raised:
            world.set_policy(only)
        assert raised.value.reason == "policy.no_candidates"
        assert picked(world) == "red.v1"
        for refuse in (world.load_policy, world.check_policy):
            with pytest.raises(opmux.InvalidArgument) as raised:
                refuse(self.MISSING, "p.yaml")
            assert raised.value.reason == "policy.no_candidates"
        only.allow_none = True
        world.set_policy(only)
        assert world.policy().allow_none
        with pytest.raises(opmux.NoCandidate):
            world.op("pick")(X)
        world.set_policy(opmux.policy(require=["pick/absent.v1"], allow_none=True))

    def test_health_shows_operators_without_candidates_and_refused_policies(self, world):
        assert not [one for one in world.health().without_candidates if one.op == "pick"]
        with pytest.raises(opmux.InvalidArgument):
            world.load_policy(self.MISSING, "p.yaml")
        report = world.health()
        assert report.refused_policies == 1 and "pick" in report.last_refusal
        world.set_policy(opmux.policy(require=["pick/absent.v1"], allow_none=True))
        shown = {one.op: one for one in world.health().without_candidates}
        assert shown["pick"].allowed and shown["pick"].when == ""
        assert "policy.outside_require" in shown["pick"].reason


class TestTransforms:
    # Transposed: the last dimension is strided, which the vector kernels refuse.
    COLUMNS = np.arange(32, dtype="f4").reshape(8, 4).T

    def test_are_off_unless_allowed_and_told_when_made(self):
        with opmux.report() as calls, opmux.prefer("rms_norm/simd.*"):
            plain = opmux.ops.rms_norm(self.COLUMNS, W)
        assert calls.implementation == "rms_norm/reference.scalar" and calls.transforms == ""
        wanted = {"prefer": ["rms_norm/simd.*"], "transforms": ["contiguous"]}
        with opmux.report() as calls, opmux.scope(**wanted):
            copied = opmux.ops.rms_norm(self.COLUMNS, W)
            chosen = opmux.explain("rms_norm", self.COLUMNS, W).candidates[0]
        assert calls.implementation.startswith("rms_norm/simd.")
        assert calls.transforms == "contiguous(x)" == chosen.transforms
        assert np.allclose(plain, copied)

    def test_are_fields_of_rules(self, world):
        rule = opmux.rule(op="pick", transforms=["widen"])
        world.set_policy(opmux.policy(rules=[rule], transforms=["none"]))
        assert world.policy().rules[0].transforms == ["widen"]
        assert world.policy().transforms == ["none"]
        with pytest.raises(opmux.InvalidArgument) as raised:
            world.set_policy(opmux.policy(transforms=["narrow"]))
        assert raised.value.reason == "policy.transforms"
