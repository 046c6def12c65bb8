"""Facts that conditions of rules compare: float arguments, and the rank of the process."""

import numpy as np
import pytest

import opmux
from opmux import Condition

pytestmark = pytest.mark.truth

X = np.ones(8, "f4")


@pytest.fixture
def shard(runtime):
    """A runtime whose operator `shard` has a fast implementation and a plain one."""
    runtime.define("shard(out Tensor y[N], Tensor x[N], float scale = 1.0)")
    for name, kind in (("fast.v1", "default"), ("plain.v1", "reference")):
        opmux.implementation("shard", name, kind=kind, runtime=runtime)(
            lambda x, scale, *, out: None
        )
    return runtime


def ran(runtime, *args):
    with opmux.report(runtime) as calls:
        runtime.op("shard")(X, *args)
    return calls.implementation.partition("/")[2]


def deny_fast(runtime, when):
    rule = opmux.rule(op="shard", deny=["shard/fast.*"], when=when)
    runtime.set_policy(opmux.policy(rules=[rule]))


@pytest.mark.parametrize(
    "when", [Condition.scalar("scale", "<", 0.5), Condition.parse("scale < 0.5")], ids=str
)
def test_a_rule_compares_a_float_argument(shard, when):
    deny_fast(shard, when)
    for _ in range(3):
        assert ran(shard, 0.25) == "plain.v1"
        assert ran(shard, 0.75) == "fast.v1"
        assert ran(shard, -0.0) == "plain.v1"
        assert ran(shard, 1) == "fast.v1"
        assert ran(shard, 0) == "plain.v1"


def test_an_int_is_compared_with_a_float_argument(shard):
    deny_fast(shard, Condition.scalar("scale", ">=", 1))
    assert [ran(shard, scale) for scale in (1.0, 0.5, 1.5)] == ["plain.v1", "fast.v1", "plain.v1"]


def test_rules_read_the_rank_of_the_process(shard):
    deny_fast(shard, Condition.parse("tp_size > 1 && rank == 0"))
    assert ran(shard) == "fast.v1"
    shard.set_rank(0, 8)
    assert ran(shard) == "plain.v1"
    shard.set_rank(rank=1, tp_size=8)
    assert ran(shard) == "fast.v1"
    assert "tp_size = 8" in opmux.explain(shard.op("shard"), X).depends_on
    shard.set_rank(None, None)
    assert ran(shard) == "fast.v1"
    with pytest.raises(opmux.InvalidArgument, match="rank"):
        shard.set_rank(-1, 8)


def test_a_dispatchable_follows_the_rank(scan):
    @scan.implementation("acme.v1")
    def acme(q, k=None, scale=1.0):
        return "acme"

    rule = opmux.rule(op="test_scan", deny=["test_scan/acme.*"], when=Condition.parse("rank == 0"))
    opmux.set_policy(opmux.policy(rules=[rule]))
    try:
        for _ in range(2):
            opmux.set_rank(0, 2)
            assert [scan(X), scan(X)] == ["body", "body"]
            opmux.set_rank(1, 2)
            assert [scan(X), scan(X)] == ["acme", "acme"]
    finally:
        opmux.set_rank(None, None)
        acme.withdraw()
