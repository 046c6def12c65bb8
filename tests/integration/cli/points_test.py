#!/usr/bin/env python3
"""Lists and explains the specialization points that a plugin answers.

usage: points_test.py OPMUX PLUGIN SCHEMAS
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPMUX, PLUGIN, SCHEMAS = sys.argv[1:]
TILE = "gemm.tile_n(Device) -> int"


def run(*words, code=0):
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    env |= {"OPMUX_PLUGIN_PATH": FOLDER, "XDG_STATE_HOME": "/dev/null"}
    ran = subprocess.run([OPMUX, "points", *words], capture_output=True, text=True, env=env,
                         check=False)
    assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout if code == 0 else ran.stderr


def told(*words):
    document = json.loads(run(*words, "--json"))
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        return document
    schema = json.loads(pathlib.Path(SCHEMAS, "points.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


def verdicts(point):
    return [(one["backend"], one["verdict"], one["code"]) for one in point["candidates"]]


def main():
    shutil.copy(PLUGIN, FOLDER)
    listed = told("list")["points"]
    assert [one["name"] for one in listed] == ["acme.size", "gemm.tile_n"], listed
    waiting = [("odd", "next", ""), ("off", "refused", "backend.disabled"), ("wide", "next", "")]
    assert verdicts(listed[1]) == waiting, listed
    assert not listed[1]["declared"] and listed[1]["signature"] == TILE
    assert "not declared" in run("list")

    # Nothing is asked without arguments; an answer of another type counts as none.
    assert verdicts(told("explain", "gemm.tile_n")) == waiting
    asked = told("explain", "gemm.tile_n", "cpu:0")
    assert asked["answer"] == "128", asked
    assert verdicts(asked) == [("odd", "no answer", ""), ("off", "refused", "backend.disabled"),
                               ("wide", "chosen", "")], asked
    nowhere = told("explain", TILE, "cuda:1")
    assert nowhere["answer"] == "" and nowhere["declared"], nowhere
    assert verdicts(nowhere)[2] == ("wide", "no answer", ""), nowhere
    assert told("explain", "acme.size", "3", "0.5", "true", "k")["answer"] == "large"
    assert "wide   chosen   priority 120" in run("explain", "gemm.tile_n", "cpu")

    assert "did you mean 'gemm.tile_n'?" in run("explain", "gemm.tile_m", code=2)
    assert "takes 1 arguments" in run("explain", "gemm.tile_n", "cpu", "cpu", code=2)
    assert "is not a value of type Device" in run("explain", "gemm.tile_n", "64", code=2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        main()
