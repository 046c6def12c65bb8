"""vLLM's own linear kernels as candidates: measured beside opmux's, and left in place where a row
says that they are the fastest."""

import json
import os
import re
import subprocess
import sys

import pytest

from opmux._information import installed

N = K = 256
CALLS = ["--op", "linear", "--dtype", "bf16", "--dim", f"N={N},K={K}", "--with", "bias"]

LAYER = """
import json, sys
import torch
import opmux
import opmux.vllm
from opmux.vllm import _linear
from opmux.vllm._settings import Settings
from vllm.model_executor.layers import utils

torch.set_num_threads(1)
opmux.vllm.register()
Settings.current = staticmethod(lambda: Settings(**json.loads(sys.argv[1])))

def calls():
    return sum(s.calls for s in opmux.stats() if s.implementation.startswith("linear/"))

layer = torch.nn.Module()
weight = torch.randn(256, 256).mul_(1 / 16).bfloat16()
layer.weight = torch.nn.Parameter(weight.clone(), requires_grad=False)
layer.bias = torch.nn.Parameter(torch.randn(256).bfloat16(), requires_grad=False)
utils.dispatch_cpu_unquantized_gemm(layer, True)
by_opmux = []
for rows in range(1, 11):
    x = torch.randn(rows, 256).bfloat16()
    before = calls()
    y = layer.cpu_linear(x, layer.weight, layer.bias)
    expected = torch.nn.functional.linear(x.float(), weight.float(), layer.bias.float())
    assert (y.float() - expected).norm() < 0.02 * expected.norm(), rows
    by_opmux += [rows] * (calls() - before)
print(json.dumps({"opmux": by_opmux, "reason": layer.opmux_reason,
                  "shared": getattr(layer, "opmux_shared", ""), "kept": layer.weight.numel() > 0}))
"""


def environment(folder, **more):
    variables = {name: value for name, value in os.environ.items() if name != "OPMUX_DISABLE"}
    return {**variables, "OPMUX_STATE_DIR": str(folder), "OMP_NUM_THREADS": "1", **more}


def command(folder, *words):
    program = installed("bin", "opmux")
    done = subprocess.run(
        [program, *map(str, words)], env=environment(folder), capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The text form of rows about layers of this size."""
    folder = tmp_path_factory.mktemp("tuned")
    rows = folder / "rows.bundle"
    said = command(
        folder, "tune", "run", *CALLS, "--over", "rows=1..8", "--threads", 1, "--budget", 60,
        "--output", rows,
        "--python", sys.executable,
    )  # fmt: skip
    assert re.search(r"^  rows=1\S* +vllm\.native", said, re.M), said
    return command(folder, "tune", "export", rows)


def layer(measured, folder, faster, *, settings="{}", **more):
    """Makes a layer with rows by which vLLM's kernel is the fastest for these numbers of rows, and
    the slowest for the others from 1 to 8. Returns what the program LAYER prints about it."""
    lines = [line for line in measured.splitlines() if not line.startswith("row ")]
    native = re.search(r"vllm\.native@\S+", measured).group()
    for ours in sorted(set(re.findall(r" ((?!vllm)[\w.]+@\S+)", measured))):
        for rows in range(1, 9):
            log = -0.5 if rows in faster else 0.5
            lines.append(
                f"row rows={rows}..{rows} {native} vs {ours} log={log} low={log - 0.1:.1f} "
                f"high={log + 0.1:.1f} rounds=20 rigor=full date=2026-11-16 tool=0.1.0 "
                "host=0000000000000001"
            )
    (folder / "rows.txt").write_text("\n".join(lines) + "\n")
    bundle = folder / "rows.bundle"
    command(folder, "tune", "merge", folder / "rows.txt", "--output", bundle)
    done = subprocess.run(
        [sys.executable, "-c", LAYER, settings], capture_output=True, text=True, timeout=300,
        env=environment(folder, OPMUX_TUNING=str(bundle), **more),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


ALL = list(range(1, 11))


def test_vllm_keeps_a_layer_for_which_its_kernel_is_the_fastest(measured, tmp_path):
    found = layer(measured, tmp_path, range(1, 9))
    assert found["opmux"] == [] and not found["kept"]
    assert found["reason"] == "vLLM's kernel was measured to be the fastest for 1 to 8 rows"


def test_a_layer_is_shared_by_the_number_of_rows(measured, tmp_path):
    found = layer(measured, tmp_path, [1, 2, 5])
    assert found["opmux"] == [3, 4, 6, 7, 8, 9, 10], "9 and 10 were not measured"
    assert found["reason"] == "" and found["kept"] and found["shared"] == "1 to 2, 5"


CASES = {
    "slower": {"faster": []},
    "denied": {"faster": range(1, 9), "OPMUX_DENY_VENDORS": "vllm"},
    "asked for opmux": {"faster": range(1, 9), "settings": '{"asked": true}'},
    "compiled": {"faster": [1, 2], "settings": '{"compiled": true}'},
}


@pytest.mark.parametrize(
    "name",
    ["denied", *(pytest.param(one, marks=pytest.mark.full) for one in CASES if one != "denied")],
)
def test_opmux_runs_a_layer(measured, tmp_path, name):
    found = layer(measured, tmp_path, **CASES[name])
    assert found["opmux"] == ALL and found["shared"] == ""
