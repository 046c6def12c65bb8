"""What every test of the package shares."""

import os

import pytest

import opmux

os.environ.setdefault("OMP_NUM_THREADS", "1")


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
