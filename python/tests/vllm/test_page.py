"""The code in docs/python/vllm.md runs as printed."""

import os
import pathlib
import re
import subprocess
import sys

from llama_step import STEP, assert_steps

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/python/vllm.md"


def code_with(first_line):
    """The code block of the page that begins with this line."""
    found = re.search(
        rf"```python theirs\n({re.escape(first_line)}\n.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert found is not None
    return found[1]


def test_the_program_of_the_page_generates_and_tells_what_ran(model, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        code_with("from vllm import LLM, SamplingParams").replace("MODEL", str(model))
    )
    environment = {
        **os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
        "OPMUX_STATE_DIR": str(tmp_path / "state"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    assert re.search(r"opmux: [1-9] of \d+ operator kinds, [1-9]\d* calls per step", done.stdout)
    assert re.search(r"'linear/\w+\.\w+': [1-9]", done.stdout)


def test_the_kernel_of_the_page_runs_in_the_worker(engine, tmp_path):
    (tmp_path / "acme_gate.py").write_text(code_with("# acme_gate.py"))
    ours = engine("float32", 32, OPMUX_PYTHON_PLUGINS="acme_gate", PYTHONPATH=str(tmp_path))
    assert ours.tokens == engine("float32", 32, plain=True).tokens
    assert_steps(ours, 32, STEP)
    assert ours.backends()["silu_and_mul"] == {"acme"}
