"""The status file of a process, read by another process."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import opmux

_SERVING = """
import sys
import numpy as np
import opmux

x = np.ones((2, 512), "f4")
for _ in range(7):
    opmux.ops.rms_norm(x)
with opmux.require("reference"):
    opmux.ops.softmax(x)
print("ready", flush=True)
sys.stdin.read()
"""
SECONDS = 60  # much longer than the test takes


@pytest.fixture
def serving(tmp_path):
    """A process that publishes a status file, makes some calls and waits."""
    environment = {**os.environ, "OPMUX_STATE_DIR": str(tmp_path), "OPMUX_STATE_PAGE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", _SERVING], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def _wait_for(pid, folder, good):
    end = time.monotonic() + SECONDS
    while True:
        try:
            state = opmux.process_state(pid, str(folder))
            if good(state.runtimes[0]):
                return state
        except opmux.NotFound:
            pass
        assert time.monotonic() < end, "the page does not come"


def test_another_process_is_asked_what_it_runs(serving, tmp_path):
    state = _wait_for(serving.pid, tmp_path, lambda r: r.calls("softmax/reference.scalar") == 1)
    assert state.pid == serving.pid and state.alive and not state.elsewhere
    (runtime,) = state.runtimes
    assert runtime.version == opmux.__version__ and runtime.mode == "dynamic"
    (norm,) = [op for op in runtime.operators if op.name == "rms_norm"]
    assert norm.calls == 7
    (choice,) = [c for c in runtime.choices if c.op == "rms_norm"]
    assert runtime.calls(choice.accepted[0]) == 7
    assert choice.accepted[0].startswith("rms_norm/simd.")
    assert choice.accepted[-1] == "rms_norm/reference.scalar"
    # The status file omits choices made inside scopes.
    assert not [c for c in runtime.choices if c.op == "softmax"]
    assert "simd" in {b.name for b in runtime.backends if b.state == "healthy"}
    assert json.loads(state.to_json())["pid"] == serving.pid
    assert [p.pid for p in opmux.process_states(str(tmp_path))] == [serving.pid]


def test_a_process_that_ended_leaves_nothing(serving, tmp_path):
    _wait_for(serving.pid, tmp_path, lambda runtime: True)
    serving.stdin.close()
    assert serving.wait(SECONDS) == 0
    assert opmux.process_states(str(tmp_path)) == []
    assert list((tmp_path / "run").iterdir()) == []
    with pytest.raises(opmux.NotFound) as refused:
        opmux.process_state(serving.pid, str(tmp_path))
    assert refused.value.reason == "state_page.process"


def test_a_process_without_a_page_is_told_how_to_have_one(tmp_path):
    with pytest.raises(opmux.NotFound, match="OPMUX_STATE_PAGE=1"):
        opmux.process_state(os.getpid(), str(tmp_path))


def test_the_command_shows_it(serving, tmp_path):
    _wait_for(serving.pid, tmp_path, lambda r: r.calls("softmax/reference.scalar") == 1)
    command = [sys.executable, "-m", "opmux", "list", "--pid", str(serving.pid)]
    shown = subprocess.run(
        command, env={**os.environ, "OPMUX_STATE_DIR": str(tmp_path)}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"process {serving.pid} (")


def test_a_runtime_keeps_a_page_if_its_options_say_so(tmp_path):
    sources = opmux.SourceOptions()
    sources.own_thread = False
    runtime = opmux.create_runtime(
        environment=[], backends=False, sources=sources,
        state=opmux.StateOptions(folder=str(tmp_path), state_page=True),
    )  # fmt: skip
    x = np.ones(4, "f4")
    runtime.op("softmax")(x, out=np.empty_like(x))
    runtime.tick(1)
    (own,) = opmux.process_state(os.getpid(), str(tmp_path)).runtimes
    assert own.calls("softmax/reference.scalar") == 1
