#!/usr/bin/env python3
"""Runs one command line and compares its output with a golden file.

usage: golden_test.py OPMUX FILE.golden [--update]

The file contains the command, standard output, standard error after a line "(stderr)", and "(exit N)".
Environment variables precede the command; no other OPMUX_* variable is set. The working directory is
written as $PWD.
"""
import os
import pathlib
import shlex
import subprocess
import sys

SKIP = 77


def environment(opmux, words):
    """Removes the leading NAME=value words; None if a backend they name was not built."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        clean[name] = value
    prefix = "OPMUX_BACKEND_"
    named = [name.removeprefix(prefix).lower() for name in clean if name.startswith(prefix)]
    if named:
        listed = subprocess.run([opmux, "list", "--json"], capture_output=True, text=True,
                                env={"PATH": clean["PATH"]}, check=True).stdout
        if any(f'"backend":"{backend}"' not in listed for backend in named):
            return None
    return clean


def transcript(opmux, command):
    words = shlex.split(command)
    env = environment(opmux, words)
    if env is None:
        return None
    assert words[0] == "opmux", command
    run = subprocess.run([opmux, *words[1:]], capture_output=True, text=True, env=env, check=False)
    said = f"$ {command}\n{run.stdout}"
    if run.stderr:
        said += f"(stderr)\n{run.stderr}"
    said += f"(exit {run.returncode})\n"
    return said.replace(os.getcwd(), "$PWD")


def main():
    opmux, path = sys.argv[1], pathlib.Path(sys.argv[2])
    expected = path.read_text(encoding="utf-8")
    said = transcript(opmux, expected.splitlines()[0].removeprefix("$ "))
    if said is None:
        print("skipped: a backend that it names was not built")
        return SKIP
    if sys.argv[3:] == ["--update"]:
        path.write_text(said, encoding="utf-8")
        return 0
    if said != expected:
        print(f"expected:\n{expected}\nfound:\n{said}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
