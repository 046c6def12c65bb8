#!/usr/bin/env python3
"""Compiles the examples in the comments of the public headers.

usage: header_examples_test.py --cxx C --cc C --include DIR

An example is a block of comment lines that are indented by three spaces (`///   code`) or, in the C
headers, by four (` *    code`). It is the body of a function that has a `runtime`; the examples in C
also have `op`, `args`, `error` and `pick_last`. An example with an OPMUX_PLUGIN_ENTRY is a complete
file. Fails if an example does not compile, or if a header has lost its examples.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

CXX_LINE, C_LINE = re.compile(r"^\s*///(?:   (.*))?$"), re.compile(r"^ \*(?:    (.*))?$")
# These have no functions or types that an example could show.
WITHOUT = {"reader.h", "version.h"}

CXX_START = """
#include <chrono>
#include <cmath>
#include <iostream>
#include <opmux/conformance.hpp>
#include <opmux/opmux.hpp>
#include <opmux/plugin.hpp>
#include <opmux/state_page.hpp>
"""
C_START = """
#include <opmux/opmux.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int64_t pick_last(void*, const opmux_selection*);
"""


def examples_of(header):
    """The examples of a header: pairs of line number and code."""
    pattern = C_LINE if header.suffix == ".h" else CXX_LINE
    found, code, start = [], [], 0
    for number, line in enumerate(header.read_text().splitlines() + [""], 1):
        match = pattern.match(line)
        if match and (match.group(1) or code):
            start = start or number
            code.append(match.group(1) or "")
            continue
        if code:
            found.append((start, "\n".join(code).rstrip()))
        code, start = [], 0
    return found


def unit_of(headers, wrap):
    """One translation unit with all examples that are bodies of functions."""
    parts = []
    for header, examples in headers:
        for line, code in examples:
            parts.append(wrap(f"example_{len(parts)}", f'#line {line} "{header}"\n{code}'))
    return "\n".join(parts)


def compile_unit(compiler, standard, include, text, suffix):
    """Compiles a unit; returns the messages of the compiler if that fails."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix) as unit:
        unit.write(text)
        unit.flush()
        done = subprocess.run(
            [compiler, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
             "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter",
             f"-I{include}", unit.name], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser()
    for name in ("--cxx", "--cc", "--include"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    root = pathlib.Path(options.include) / "opmux"
    headers = [(path, examples_of(path)) for path in sorted(root.rglob("*.h*"))
               if path.parent.name != "detail" and path.name not in WITHOUT]
    problems = [f"{path}: has no example\n" for path, examples in headers if not examples]
    def bodies(suffix):
        return [(path, [e for e in found if "OPMUX_PLUGIN_ENTRY" not in e[1]])
                for path, found in headers if path.suffix == suffix]
    problems.append(compile_unit(options.cxx, "c++20", options.include, CXX_START + unit_of(
        bodies(".hpp"), lambda name, code: f"int {name}(opmux::Runtime& runtime);\n"
        f"int {name}(opmux::Runtime& runtime) {{\n{code}\n  return 0;\n}}"), ".cpp"))
    problems.append(compile_unit(options.cc, "c11", options.include, C_START + unit_of(
        bodies(".h"), lambda name, code: f"int {name}(opmux_runtime* runtime, opmux_operator* op, "
        f"opmux_arg* args, opmux_error error) {{\n{code}\n  return 0;\n}}"), ".c"))
    files = [(p, e) for p, found in headers for e in found if "OPMUX_PLUGIN_ENTRY" in e[1]]
    for path, (line, code) in files:
        is_c = path.suffix == ".h"
        problems.append(compile_unit(
            options.cc if is_c else options.cxx, "c11" if is_c else "c++20", options.include,
            f'#include <opmux/{path.name}>\n#line {line} "{path}"\n{code}\n', ".c" if is_c else ".cpp"))
    sys.stderr.write("".join(problems))
    count = sum(len(found) for _, found in headers)
    print(f"examples: {count} in {len(headers)} headers")
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
