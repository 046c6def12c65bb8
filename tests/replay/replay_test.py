#!/usr/bin/env python3
"""A service records a call of a wrong kernel; the command replays and minimizes it.

usage: replay_test.py OPMUX SERVER PLUGINS SCHEMA CASE
"""
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile

import jsonschema

OPMUX, SERVER, PLUGINS, SCHEMA = sys.argv[1:5]
TILE = 16


def run(code, *words, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    env["OPMUX_PLUGIN_PATH"] = PLUGINS
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                         env=env | variables)
    assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def serve(folder, *words, inputs=True, **variables):
    """Runs the service; returns the single file that it wrote."""
    records = folder / "records"
    record = f"inputs:{records}" if inputs else str(records)
    said = run(0, SERVER, *words, OPMUX_RECORD=record, OPMUX_STATE_DIR=str(folder / "state"),
               **variables)
    files = list(records.glob("*.opmux-replay"))
    assert len(files) == 1, f"{files}\n{said}"
    assert stat.S_IMODE(records.stat().st_mode) == 0o700
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    return files[0]


def width_of(text, argument):
    return int(re.search(rf"{argument}=f32\[(?:\d+,)*(\d+)\]", text)[1])


def a_call_that_failed(folder):
    file = serve(folder, "softmax", 12, 999, 3)
    said = run(1, OPMUX, "replay", file)
    assert "failed in softmax/faulty.tail (call.failed): what is left over" in said, said
    assert "fails  it returned failed (call.failed): softmax/faulty.tail failed" in said, said
    assert "y=f32[12,999] x=f32[12,999]" in said, said
    run(0, OPMUX, "replay", file, "--impl", "softmax/reference.scalar")
    smaller = folder / "smaller.opmux-replay"
    document = json.loads(run(1, OPMUX, "replay", file, "--minimize", "--out", smaller, "--json"))
    assert width_of(document["smaller"]["arguments"], "x") <= 2 * TILE, document
    again = json.loads(run(1, OPMUX, "replay", smaller, "--json"))
    assert again["arguments"] == document["smaller"]["arguments"]
    schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8"))
    for each in (document, again):
        jsonschema.validate(each, schema)


def wrong_results(folder, op, argument):
    """The shadow check finds the call; it is recorded, replayed and minimized."""
    policy = folder / "policy.yaml"
    policy.write_text("opmux: 1\nshadow: {every: 1, share: 1}\n", encoding="utf-8")
    file = serve(folder, op, 12, 999, 2000, OPMUX_CONFIG=str(policy))
    said = run(1, OPMUX, "replay", file)
    assert f"diverged in {op}/faulty.tail (shadow.mismatch): " in said, said
    sentence = rf"differs  {op}/faulty.tail differs from the reference at y\[\d+,\d+\]: \S+ instead of "
    assert re.search(sentence, said), said
    assert "note:" not in said, said
    run(0, OPMUX, "replay", file, "--impl", f"{op}/reference.scalar")
    smaller = folder / "smaller.opmux-replay"
    made = run(1, OPMUX, "replay", file, "--minimize", "--out", smaller)
    again = run(1, OPMUX, "replay", smaller)
    assert re.search(sentence, again), again
    assert width_of(again, "y") <= 2 * TILE and f"{argument}=f32[1," in again, made + again


def a_norm_that_is_wrong(folder):
    wrong_results(folder, "rms_norm", "x")


def a_gate_that_is_wrong(folder):
    wrong_results(folder, "silu_and_mul", "x")


def a_file_without_inputs(folder):
    file = serve(folder, "softmax", 2, 40, 1, inputs=False)
    assert len(file.read_bytes()) < 4096
    said = run(1, OPMUX, "replay", file)
    assert "note: the file does not have the elements of x: generated values are used instead" in said, said
    without = run(2, OPMUX, "replay", file, OPMUX_PLUGIN_PATH="")
    assert "there is no implementation 'softmax/faulty.tail' here" in without, without


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        globals()[sys.argv[5]](pathlib.Path(name))
