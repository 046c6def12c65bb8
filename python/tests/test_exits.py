"""Ends of processes: the exit status is as asked, and no implementation is quarantined for it.

`pytest -m exits` runs each program of exit_programs.py 20 times; `pytest -m 'exits and not full'`
runs each twice.
"""

import pathlib
import subprocess
import sys
import time

import exit_programs
import pytest

import opmux

pytestmark = pytest.mark.exits
PROGRAM = pathlib.Path(exit_programs.__file__)
SECONDS = 60  # much longer than any program takes: reached only by a deadlock


def end(name, folder):
    """Runs a program once and returns its status and its messages."""
    command = [sys.executable, PROGRAM, name, folder]
    made = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return made.returncode, made.stderr


def judged_in(folder):
    """The quarantine after the journals of all ended processes were read."""
    environment = [("OPMUX_STATE_DIR", str(folder)), ("OPMUX_CRASH_JOURNAL", "on")]
    return opmux.create_runtime(environment=environment).quarantine()


def run_often(name, folder, times):
    status = exit_programs.PROGRAMS[name][1]
    for _ in range(times):
        started = time.monotonic()
        assert end(name, folder) == (status, "")
        assert time.monotonic() - started < SECONDS / 2
    found = judged_in(folder)
    assert not found.entries and not found.suspected


def test_there_are_twenty_programs():
    assert len(exit_programs.PROGRAMS) == 20


@pytest.mark.parametrize("name", exit_programs.PROGRAMS)
def test_a_program_ends_as_asked(name, tmp_path):
    run_often(name, tmp_path, 2)


@pytest.mark.full
@pytest.mark.parametrize("name", exit_programs.PROGRAMS)
def test_a_program_ends_as_asked_twenty_times(name, tmp_path):
    run_often(name, tmp_path, 20)
