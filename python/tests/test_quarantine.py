"""Quarantine of implementations in which a process crashed."""

import subprocess
import sys

import pytest

import opmux

_CRASHING = """
import os, sys
import numpy as np
import opmux

runtime = opmux.create_runtime(
    environment=[], backends=False,
    state=opmux.StateOptions(folder=sys.argv[1], crash_journal="with_handler"))

@opmux.implementation("softmax", "acme.v1", kind="default", runtime=runtime)
def kernel(x, scale):
    {how}

x = np.zeros(4, np.float32)
runtime.op("softmax")(x, out=np.empty_like(x))
"""


def _state(folder, journal="on"):
    return opmux.StateOptions(folder=str(folder), crash_journal=journal)


def test_a_journal_is_kept_only_if_it_is_asked_for(tmp_path):
    off = opmux.create_runtime(environment=[], backends=False, state=_state(tmp_path, "off"))
    assert not off.crash_journal().on
    on = opmux.create_runtime(
        environment=[], backends=False, state=_state(tmp_path, "with_handler")
    )
    state = on.crash_journal()
    assert state.on and state.handler and state.path.startswith(str(tmp_path / "run"))
    assert on.quarantine().entries == [] and on.quarantine().suspected == []
    assert on.clear_quarantine() == 0


def test_words_for_journals_are_known():
    assert opmux.StateOptions().crash_journal == "off"
    with pytest.raises(ValueError, match="with_handler"):
        opmux.StateOptions(crash_journal="maybe")


@pytest.mark.parametrize("how", ["os.abort()", "os.kill(os.getpid(), 9)"])
def test_the_next_process_knows_how_the_last_one_ended(tmp_path, how):
    program = _CRASHING.replace("{how}", how)
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True)
    assert ended.returncode < 0, ended.stderr.decode()
    later = opmux.create_runtime(environment=[], backends=False, state=_state(tmp_path))
    found = later.quarantine()
    if how == "os.abort()":
        assert [(e.implementation, e.how) for e in found.entries] == [
            ("softmax/acme.v1", "SIGABRT")
        ]
        assert later.clear_quarantine("softmax/acme.v2") == 0
        assert later.clear_quarantine("softmax/acme.v1") == 1
        assert later.quarantine().entries == []
    else:
        assert found.entries == []
        assert [end.implementations for end in found.suspected] == [["softmax/acme.v1"]]
