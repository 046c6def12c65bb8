#!/usr/bin/env python3
"""A process crashes inside a kernel; the command lists the kernel and clears its quarantine.

usage: quarantine_test.py OPMUX CRASH_SERVER SCHEMA
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

OPMUX, SERVER, SCHEMA = sys.argv[1:]


def run(folder, *words, code):
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    ran = subprocess.run([OPMUX, "quarantine", *words], capture_output=True, text=True,
                         env=env | {"OPMUX_STATE_DIR": folder})
    assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout + ran.stderr


def main(folder):
    assert run(folder, "list", code=0) == "nothing is quarantined\n"
    subprocess.run([SERVER, folder, "fault", "segv", "3"], stderr=subprocess.DEVNULL)
    text = run(folder, "list", code=1)
    assert text.startswith("op3/fast.kernel  SIGSEGV  since ") and text.endswith(", not registered here\n"), text
    document = json.loads(run(folder, "list", "--json", code=1))
    jsonschema.validate(document, json.loads(pathlib.Path(SCHEMA).read_text()))
    assert [entry["implementation"] for entry in document["quarantined"]] == ["op3/fast.kernel"]
    assert "did you mean 'op3/fast.kernel'" in run(folder, "clear", "op3/fast.kernell", code=2)
    assert "--all" in run(folder, "clear", code=2)
    run(folder, "clear", "op3/fast.kernel", code=0)
    assert run(folder, "list", code=0) == "nothing is quarantined\n"
    run(folder, "clear", "--all", code=0)


with tempfile.TemporaryDirectory() as state:
    main(state)
