"""The cost and the effects of importing the package."""

import json
import subprocess
import sys

import pytest

import opmux

LIMIT_MS = 60
PROBE = """
import json, sys, time
before = set(sys.modules)
start = time.process_time()
import opmux
spent = (time.process_time() - start) * 1e3
print(json.dumps({"ms": spent, "modules": sorted(set(sys.modules) - before)}))
"""


def probe():
    ran = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def test_is_imported_within_60_ms():
    assert min(probe()["ms"] for _ in range(5)) <= LIMIT_MS


def test_brings_no_array_library_and_nothing_slow():
    modules = set(probe()["modules"])
    assert "opmux._core" in modules
    unwanted = {"torch", "numpy", "jax", "cupy", "logging", "inspect", "importlib.metadata"}
    assert not unwanted & modules


SUBINTERPRETER = """
import _xxsubinterpreters as interpreters
import opmux
other = interpreters.create()
for _ in range(2):
    try:
        interpreters.run_string(other, "import opmux")
    except interpreters.RunFailedError as error:
        print(error)
interpreters.destroy(other)
print(opmux.op("softmax").name)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="_xxsubinterpreters has another name")
def test_a_subinterpreter_is_refused_and_leaves_the_main_one_intact():
    ran = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    first, second, name = ran.stdout.splitlines()
    assert first == second and name == "softmax"
    assert "ImportError" in first and "opmux supports only the main interpreter" in first


def test_every_public_name_is_there():
    assert len(set(opmux.__all__)) == len(opmux.__all__)
    assert all(hasattr(opmux, name) for name in opmux.__all__)


def test_no_public_name_is_left_out():
    module = type(sys)
    public = {n for n, v in vars(opmux).items() if n[0] != "_" and not isinstance(v, module)}
    assert public - {"annotations"} <= set(opmux.__all__)
