#!/usr/bin/env python3
"""Reads the status file of a running process from outside, and kills the process.

usage: state_page_test.py OPMUX SERVER SCHEMA
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import jsonschema

OPMUX, SERVER, SCHEMA = sys.argv[1:]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}


def run(folder, *words, code):
    ran = subprocess.run([OPMUX, *words], capture_output=True, text=True,
                         env=CLEAN | {"OPMUX_STATE_DIR": folder})
    assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout + ran.stderr


def calls(folder, pid):
    """The calls of op1/fast.kernel; None as long as there is no status file."""
    ran = subprocess.run([OPMUX, "list", "--pid", pid, "op1", "--json"], capture_output=True,
                         text=True, env=CLEAN | {"OPMUX_STATE_DIR": folder})
    if ran.returncode != 0:
        return None
    document = json.loads(ran.stdout)
    jsonschema.validate(document, json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8")))
    (op,) = document["runtimes"][0]["operators"]
    return op["implementations"][0]["calls"]


def wait_for(what):
    end = time.monotonic() + 60
    while not (found := what()):
        assert time.monotonic() < end, "nothing came"
    return found


def main(folder):
    assert run(folder, "list", "--pid", code=0).startswith("no process writes a status file in ")
    server = subprocess.Popen([SERVER, folder, "serve", "2"], stdout=subprocess.PIPE, text=True,
                              env=CLEAN | {"OPMUX_STATE_PAGE": "1"})
    pid = str(server.pid)
    try:
        assert server.stdout.readline() == "ready\n"
        first = wait_for(lambda: calls(folder, pid))
        wait_for(lambda: calls(folder, pid) > first)
        assert run(folder, "list", "--pid", code=0).startswith(pid)
        text = run(folder, "list", "--pid", pid, code=0)
        assert text.startswith(f"process {pid} (crash_server) since "), text
        assert "op1/fast.kernel" in text and "chosen" in text, text
        text = run(folder, "explain", "--pid", pid, "op1", code=0)
        assert "runs    op1/fast.kernel" in text and "then    op1/plain.slow" in text, text
    finally:
        server.kill()
        server.wait()
    assert "left a status file" in run(folder, "list", "--pid", pid, code=2)
    assert run(folder, "explain", "--pid", code=0).startswith("no process writes")


with tempfile.TemporaryDirectory() as state:
    main(state)
