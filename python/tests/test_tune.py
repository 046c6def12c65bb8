"""Measuring the calls of a function: the cells, the table, and the rows in the same process."""

import os
import subprocess
import sys
import textwrap

import pytest

import opmux

MODEL = """
    import numpy as np

    import opmux

    a = np.ones((16, 64), np.float32)
    b = np.ones((64, 48), np.float32)
    x = np.ones((4, 64), np.float32)

    def model():
        for _ in range(20):
            opmux.ops.matmul(a, b)
        opmux.ops.softmax(x)

    opmux.ops.softmax(np.ones((7, 9), np.float32))  # not a call of the model
    opmux.ops.rms_norm(x)
"""


def run(tmp_path, text):
    program = textwrap.dedent(MODEL) + textwrap.dedent(text)
    variables = os.environ | {"OPMUX_STATE_DIR": str(tmp_path), "OPMUX_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_calls_of_a_function_are_measured_and_the_rows_used(tmp_path):
    said = run(
        tmp_path,
        """
        print(opmux.tune(model, budget=20))
        (found,) = opmux.tuning(check=True)
        print(found.path, found.used, "rows used")
        why = opmux.explain("matmul", a, b)
        print("measured", sorted(c.id for c in why.candidates if c.measured is not None))
        print("chosen", why.chosen)
        """,
    )
    assert "matmul f32,f32,f32 K=64 M=16 N=48 rows=1 threads=1 eager\n" in said
    assert "H=9" not in said and "rms_norm" not in said, "only the calls of the function"
    assert f"{tmp_path}/store/tuning/local.bundle" in said
    (used,) = [line.split()[1] for line in said.splitlines() if line.endswith("rows used")]
    assert int(used) > 0
    (measured,) = [line for line in said.splitlines() if line.startswith("measured ")]
    assert "matmul/" in measured
    (chosen,) = [line for line in said.splitlines() if line.startswith("chosen ")]
    assert chosen.split()[1] != "matmul/reference.scalar"


def test_another_bundle_and_threads_can_be_named(tmp_path):
    path = tmp_path / "mine.bundle"
    said = run(
        tmp_path,
        f"""
        print(opmux.tune(model, budget=20, threads=1, output={str(path)!r}, resume=False))
        print(len(opmux.tuning()), "bundles")
        """,
    )
    assert f"wrote {path}" in said and "0 bundles" in said
    assert path.exists()


def test_the_command_gets_the_options(monkeypatch):
    asked = []
    monkeypatch.setattr("opmux._tune._run", lambda words: asked.append(words[2:]) or "table")
    assert opmux.tune(lambda: None, budget=7, threads=2, output="x.bundle", resume=False) == "table"
    assert opmux.tune(lambda: None, budget=8) == "table"
    given = ["--budget", "7", "--threads", "2", "--output", "x.bundle"]
    assert asked == [given, ["--budget", "8", "--resume"]]


def test_a_function_without_calls_is_refused():
    with pytest.raises(opmux.InvalidArgument, match="no sampled calls") as refused:
        opmux.tune(lambda: None, budget=1)
    assert refused.value.reason == "tune.cell"


def test_an_exception_ends_the_sampling():
    def fails():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        opmux.tune(fails)


def test_a_state_page_can_be_written_at_any_time(tmp_path):
    path = tmp_path / "page"
    opmux.write_state_page(path)
    assert f"{os.getpid()}" in path.read_text()
    with pytest.raises(opmux.Failed) as refused:
        opmux.write_state_page(tmp_path / "no" / "page")
    assert refused.value.reason == "state_page.file"


def test_bundles_are_looked_for_again(tmp_path):
    folder = tmp_path / "fleet"
    folder.mkdir(mode=0o755)
    environment = [("OPMUX_TUNING", str(folder)), ("OPMUX_STATE_DIR", str(tmp_path / "state"))]
    runtime = opmux.Runtime(environment=environment, backends=False)
    assert runtime.tuning() == []
    (folder / "a.bundle").write_bytes(b"OPMUXTUN")
    runtime.reload_tuning()
    (found,) = runtime.tuning()
    assert found.path == str(folder / "a.bundle") and "shorter" in found.problem
    runtime.freeze(None)
    with pytest.raises(opmux.Frozen):
        runtime.reload_tuning()
