"""Fixtures shared by the tests of the package."""

import gc
import importlib.util
import os
import pathlib
import subprocess
import sysconfig

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

import opmux
from opmux import _core

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _vllm_is_installed():
    """Whether the vllm package is installed. The test folder `vllm` alone, which has no origin,
    does not count."""
    found = importlib.util.find_spec("vllm")
    return found is not None and found.origin is not None


collect_ignore = [] if _vllm_is_installed() else ["vllm"]
# These tests add a backend to torch, so that ctest runs them in a separate process.
if "TEST_DEVICE_LIBRARIES" not in os.environ:
    collect_ignore.append("device")


@pytest.fixture
def runtime():
    """A new runtime that ignores the environment."""
    return opmux.create_runtime(environment=[])


@pytest.fixture
def scan():
    """A dispatchable function without implementations besides its body."""

    @opmux.dispatchable
    def test_scan(q, k=None, scale=1.0):
        return "body"

    yield test_scan
    # The next test registers implementations with the same ids.
    for breaker in opmux.health().breakers:
        if breaker.implementation.startswith("test_scan/"):
            opmux.force_breaker(breaker.implementation, "close")


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Resets the policy after each test, and asserts that no scope is still entered."""
    yield
    opmux.reset_policy()
    assert opmux._core.scope_variable.get(None) is None
    gc.collect(0)


@pytest.fixture
def world():
    """A new runtime with one operator and its reference in Python."""
    made = opmux.create_runtime(environment=[])
    made.define("twice(out Tensor y[N], Tensor x[N], float factor = 2, enum{a, b} mode = a)")

    @opmux.implementation("twice", "own.body", kind="reference", runtime=made)
    def body(x, factor, mode, *, out):
        np.multiply(x, factor, out=out)

    return made


@pytest.fixture(scope="session")
def compiled_reader(tmp_path_factory):
    """The torch reader, compiled once for all tests."""
    torch = pytest.importorskip("torch")
    source = _ROOT / "python/opmux/torch/_reader.cpp"
    built = tmp_path_factory.mktemp("reader") / "_opmux_torch_reader.so"
    home = pathlib.Path(torch.__file__).parent
    folders = [_ROOT / "include", sysconfig.get_path("include"), home / "include",
               home / "include/torch/csrc/api/include"]  # fmt: skip
    command = ["g++", "-std=c++20", "-O0", "-fvisibility=hidden", "-shared", "-fPIC", "-o", built,
               source, *(f"-I{one}" for one in folders), f"-L{home / 'lib'}", "-ltorch_python",
               "-ltorch_cpu", "-lc10"]  # fmt: skip
    try:
        made = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no compiler: {error}")
    assert made.returncode == 0, made.stderr[-2000:]
    spec = importlib.util.spec_from_file_location("_opmux_torch_reader", built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reader


@pytest.fixture(params=["exchange", pytest.param("module", marks=pytest.mark.full)])
def reader(request):
    """Selects how this test reads torch tensors."""
    if request.param == "module":
        _core.use_torch_reader(request.getfixturevalue("compiled_reader"))
    else:
        _core.use_torch_reader(None)
    yield request.param
    _core.use_torch_reader(None)
