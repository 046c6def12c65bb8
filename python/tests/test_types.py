"""The errors and types that a type checker reports to users of the package."""

import subprocess
import sys

import pytest

import opmux

pytest.importorskip("mypy")

PROGRAM = """
from typing import Any
import opmux

class Array:
    def __dlpack__(self, *, stream: int | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

x, y = Array(), Array()
reveal_type(opmux.ops.rms_norm(x, eps=1e-5, out=y))
reveal_type(opmux.ops.fused_add_rms_norm(x, y))
reveal_type(opmux.ops.topk_softmax(x, out=(x, y)))
reveal_type(opmux.op("rms_norm").bind(x).implementation)
reveal_type(opmux.explain("rms_norm", x).candidates[0].reason)
opmux.ops.linear(x, opmux.constant(x))
opmux.ops.acme.swish(x)
opmux.ops.rms_norm(x, epsilon=1)
opmux.ops.gelu_and_mul(x, approximate="sine")
opmux.ops.rms_norm(3)
"""


def test_calls_are_checked_and_results_have_types(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    folder = opmux.__file__.rpartition("/opmux/")[0]
    environment = {} if "site-packages" in folder else {"MYPYPATH": folder}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    found = [line.partition("program.py:")[2] for line in ran.stdout.splitlines()]
    told = [line for line in found if " note: Revealed type" in line or " error: " in line]
    expected = [
        '11: note: Revealed type is "program.Array"',
        '12: note: Revealed type is "None"',
        '13: note: Revealed type is "tuple[Any, Any]"',
        '14: note: Revealed type is "str"',
        '15: note: Revealed type is "str"',
        '18: error: Unexpected keyword argument "epsilon"',
        '19: error: Argument "approximate" to "gelu_and_mul"',
        '20: error: Value of type variable "T" of "rms_norm"',
    ]
    assert len(told) == len(expected), ran.stdout
    for line, start in zip(told, expected, strict=True):
        assert line.startswith(start), ran.stdout
