"""Calls with torch tensors run on torch's threads. Each case runs in a separate process."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

_PROGRAM = """
import os
import torch
import opmux
{before}
torch.set_num_threads(2)
x = torch.randn(4096, 1024)
w = torch.ones(1024)
y = torch.empty_like(x)
torch.add(x, x)  # torch's threads are there now, and with the next call those that engines bring
opmux.ops.rms_norm(x[:1], w, out=y[:1])
threads = len(os.listdir("/proc/self/task"))
with opmux.require("rms_norm/simd.*"), torch.inference_mode(), opmux.report() as calls:
    opmux.ops.rms_norm(x, w, out=y)
assert calls[-1].implementation.startswith("rms_norm/simd."), calls
print(len(os.listdir("/proc/self/task")) - threads)
"""


def _new_threads(before="", **environment):
    program = _PROGRAM.format(before=before)
    env = os.environ | {"OMP_NUM_THREADS": "2", "OPMUX_NUM_THREADS": "2"} | environment
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_call_with_torch_tensors_starts_no_threads_besides_those_of_torch():
    assert _new_threads() == 0


def test_without_torch_threads_the_runtime_starts_its_own():
    away = "import opmux._runtime\nopmux._runtime._use_openmp = lambda runtime: None"
    assert _new_threads(away) == 1


def test_a_process_without_openmp_says_so():
    program = (
        "import opmux\n"
        "try:\n    opmux.create_runtime(backends=False, environment=[]).use_openmp()\n"
        "except opmux.Unsupported as error:\n    print(error.reason)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "threads.openmp\n"
