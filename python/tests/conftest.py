"""What every test of the package shares."""

import gc
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

import opmux


@pytest.fixture
def runtime():
    """A runtime of the test's own, without the machine's settings."""
    return opmux.create_runtime(environment=[])


@pytest.fixture
def scan():
    """A function with nobody but its body."""

    @opmux.dispatchable
    def test_scan(q, k=None, scale=1.0):
        return "body"

    return test_scan


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves a policy or a scope behind."""
    yield
    opmux.reset_policy()
    assert opmux._core.scope_variable.get(None) is None
    gc.collect(0)


@pytest.fixture
def world():
    """An operator with a reference in Python, in a runtime of its own."""
    made = opmux.create_runtime(environment=[])
    made.define("twice(out Tensor y[N], Tensor x[N], float factor = 2, enum{a, b} mode = a)")

    @opmux.implementation("twice", "own.body", kind="reference", runtime=made)
    def body(x, factor, mode, *, out):
        np.multiply(x, factor, out=out)

    return made
