"""Keyword arguments whose readers no other test would miss; see tools/surface."""

import pytest

import opmux

pytestmark = pytest.mark.truth


def unchanged(x, factor, mode):
    return x


def info(runtime, implementation):
    return next(
        each for op in runtime.list() for each in op.implementations if each.id == implementation
    )


@pytest.mark.parametrize(
    "promise", ["atomic_outputs", "deterministic", "batch_invariant", "capture_safe"]
)
def test_promises_of_an_implementation_are_listed(world, promise):
    opmux.implementation("twice", "mine.v1", runtime=world, **{promise: True})(unchanged)
    assert info(world, "twice/mine.v1").promises == [promise]
    assert info(world, "twice/own.body").promises == []


def test_serial_is_refused_because_python_functions_have_no_prepared_state(world):
    with pytest.raises(
        opmux.InvalidArgument, match="twice/mine.v1: serial= .* use a lock"
    ) as caught:
        opmux.implementation("twice", "mine.v1", serial=True, runtime=world)(unchanged)
    assert caught.value.reason == "python.option"
