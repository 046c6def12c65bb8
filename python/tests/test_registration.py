"""Operators and implementations that are registered in one step."""

import contextvars
import threading

import numpy as np
import pytest

import opmux

X = np.arange(4, dtype="f4")
NAMES = [f"times_{n}" for n in range(50)]


@pytest.fixture
def many(runtime):
    """A runtime with fifty operators and without implementations of them."""
    runtime.define_all([f"{name}(out Tensor y[N], Tensor x[N])" for name in NAMES])
    return runtime


def implement(runtime, name, variant="mine.v1", **options):
    """Registers a function that multiplies by the number in the operator's name."""

    @opmux.implementation(name, variant, runtime=runtime, **options)
    def multiply(x, *, out):
        np.multiply(x, int(name.partition("_")[2]), out=out)

    return multiply


def ran(runtime, name):
    """The implementation that runs a call, whose result must be right."""
    with opmux.report(runtime) as calls:
        y = runtime.op(name)(X)
    assert y.tolist() == (X * int(name.partition("_")[2])).tolist()
    return calls.implementation


def test_operators_are_defined_with_one_publication(runtime):
    before = runtime.generation
    runtime.define_all(["one(Tensor x[N])", "two(Tensor x[N])"], data_checked=True)
    assert runtime.generation == before + 1
    assert runtime.op("one") is not None and runtime.op("two") is not None


def test_no_operator_is_defined_if_one_is_refused(runtime):
    before = runtime.generation
    with pytest.raises(opmux.InvalidArgument, match="^two: "):
        runtime.define_all(["one(Tensor x[N])", "two(Tensr x)"])
    with pytest.raises(opmux.NotFound):
        runtime.op("one")
    assert runtime.generation == before


def test_the_default_runtime_defines_several():
    made = opmux.define_all(f"batch_{n}(out Tensor y[N], Tensor x[N])" for n in range(3))
    assert [op.name for op in made] == ["batch_0", "batch_1", "batch_2"]


def test_implementations_are_published_once_when_the_block_ends(many):
    before = many.generation
    with opmux.register_together(many):
        for name in NAMES:
            implement(many, name)
        assert many.generation == before
        with pytest.raises(opmux.NoCandidate):
            many.op("times_0")(X)
    assert many.generation == before + 1
    assert [ran(many, name) for name in NAMES] == [f"{name}/mine.v1" for name in NAMES]


def test_each_of_them_can_be_withdrawn(many):
    with opmux.register_together(many):
        made = [implement(many, name) for name in NAMES]
    made[3].withdraw()
    with pytest.raises(opmux.NoCandidate):
        many.op("times_3")(X)
    assert ran(many, "times_4") == "times_4/mine.v1"


def test_nothing_is_left_if_one_is_refused(many):
    before = many.generation
    with (
        pytest.raises(opmux.InvalidArgument, match="^times_7/mine.v1: ") as raised,
        opmux.register_together(many),
    ):
        for name in NAMES:
            implement(many, name, priority=2000 if name == "times_7" else 100)
    assert raised.value.reason == "registry.priority"
    assert many.generation == before
    with pytest.raises(opmux.NoCandidate):
        many.op("times_0")(X)
    implement(many, "times_0")
    assert ran(many, "times_0") == "times_0/mine.v1"


def test_nothing_is_registered_if_the_block_raises(many):
    with pytest.raises(ZeroDivisionError), opmux.register_together(many):
        implement(many, "times_0")
        raise ZeroDivisionError
    with pytest.raises(opmux.NoCandidate):
        many.op("times_0")(X)
    implement(many, "times_1")
    assert ran(many, "times_1") == "times_1/mine.v1"


def test_a_verifier_of_the_block_is_asked(many):
    with opmux.register_together(many):
        first = implement(many, "times_2", "strict.v1", priority=200)
        implement(many, "times_2")

        @first.verifier
        def refuse(x):
            return "not today"

    assert ran(many, "times_2") == "times_2/mine.v1"


def test_a_block_collects_only_for_its_runtime_and_its_thread(many, world):
    before = many.generation
    with opmux.register_together(world):
        implement(many, "times_1")
        assert ran(many, "times_1") == "times_1/mine.v1"
    with opmux.register_together(many):
        other = threading.Thread(
            target=contextvars.Context().run, args=(implement, many, "times_2")
        )
        other.start()
        other.join()
        assert ran(many, "times_2") == "times_2/mine.v1"
        with opmux.register_together(many):
            implement(many, "times_3")
        assert ran(many, "times_3") == "times_3/mine.v1", "an inner block ends by itself"
        implement(many, "times_4")
    assert many.generation == before + 4
    assert ran(many, "times_4") == "times_4/mine.v1"


def test_a_frozen_runtime_refuses_the_block(many):
    many.freeze()
    with pytest.raises(opmux.Frozen), opmux.register_together(many):
        implement(many, "times_0")
    with pytest.raises(opmux.Frozen):
        many.define_all(["new(Tensor x[N])"])
