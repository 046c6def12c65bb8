"""What every test of the package shares."""

import os

import pytest

import opmux

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def runtime():
    """A runtime of the test's own, without the machine's settings."""
    return opmux.create_runtime(environment=[])
