#!/usr/bin/env python3
"""Runs the examples of docs/policy.md through `opmux check`.

usage: policy_examples_test.py OPMUX PAGE MACHINE [--update]

Each ```yaml check=NAME block is followed by a ```text of=NAME block with the expected output.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLE = re.compile(r"```yaml check=(\w+)\n(.*?)```\n\n```text of=\1\n(.*?)```", re.S)


def said(opmux, machine, text):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "policy.yaml").write_text(text, encoding="utf-8")
        run = subprocess.run([opmux, "check", "policy.yaml", "--machine", machine], cwd=folder,
                             capture_output=True, text=True, check=False)
    return f"{run.stdout}{run.stderr}"


def main(opmux, page, machine, *options):
    path = pathlib.Path(page)
    text = path.read_text(encoding="utf-8")
    opmux, machine = (str(pathlib.Path(name).resolve()) for name in (opmux, machine))
    examples, wrong = EXAMPLE.findall(text), 0
    for name, policy, expected in examples:
        found = said(opmux, machine, policy)
        if found != expected:
            wrong += 1
            print(f"{name}: expected\n{expected}found\n{found}")
    if options == ("--update",):
        path.write_text(EXAMPLE.sub(
            lambda m: f"```yaml check={m[1]}\n{m[2]}```\n\n```text of={m[1]}\n"
                      f"{said(opmux, machine, m[2])}```", text), encoding="utf-8")
        return 0
    print(f"examples: {len(examples)}, {wrong} differ")
    return 1 if wrong or text.count("check=") != len(examples) or not examples else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
