#!/usr/bin/env python3
"""Checks that the library exports exactly the C functions that the headers declare, and that all are tested.

usage: symbols_test.py LIBRARY HEADER.h... TEST.c...
"""
import pathlib
import re
import subprocess
import sys


def main():
    library, *sources = sys.argv[1:]
    text = {suffix: "".join(pathlib.Path(path).read_text() for path in sources if path.endswith(suffix))
            for suffix in (".h", ".c")}
    declared = set(re.findall(r"OPMUX_EXPORT[^;(]*?\b(opmux_\w+)\(", text[".h"]))
    lines = subprocess.run(["nm", "--dynamic", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    exported = {line.split()[-1].split("@")[0] for line in lines}
    exported = {name for name in exported if name.startswith("opmux_")}
    called = set(re.findall(r"\b(opmux_\w+)\(", text[".c"]))
    problems = [f"declared, not exported: {name}" for name in sorted(declared - exported)]
    problems += [f"exported, not declared: {name}" for name in sorted(exported - declared)]
    problems += [f"not called by a test: {name}" for name in sorted(declared - called)]
    print("\n".join(problems + [f"{len(declared)} functions, {len(problems)} problems"]))
    return 1 if problems or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
