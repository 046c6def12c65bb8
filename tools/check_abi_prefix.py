#!/usr/bin/env python3
"""Checks that plugins built with the released C header stay compatible with the current one.

Every struct in tests/abi/v1/abi.h must be a prefix of the struct of the same name in
include/opmux/abi.h and its parts in include/opmux/abi/: the same fields, types and order, with new
fields only at the end. Frozen value types, constants and function types must be identical. Fields are
compared as source text, including parameter names.

  check_abi_prefix.py             compare; print incompatibilities and exit with 1
  check_abi_prefix.py --layout    rewrite tests/abi/layout.inc after fields were appended
  check_abi_prefix.py --freeze    make the current header the reference and rewrite the layout

--freeze discards the previous reference, so use it only before the first release of a major version.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TODAY = ROOT / "include/opmux/abi.h"
RELEASED = ROOT / "tests/abi/v1/abi.h"
LAYOUT = ROOT / "tests/abi/layout.inc"

FROZEN = ("opmux_str", "opmux_dtype", "opmux_device", "opmux_tensor", "opmux_arg", "opmux_list",
          "opmux_value")
MAY_GROW = ("OPMUX_ABI_MINOR",)

PART = re.compile(r"^#include <(opmux/abi/\w+\.h)>\n", re.MULTILINE)
RECORD = re.compile(r"typedef (struct|union) (\w+) \{(.*?)\} (\w+);", re.DOTALL)
FUNCTION_TYPE = re.compile(r"typedef [^;{}]*\(\*(\w+)\)\([^;{}]*\);")
CONSTANT = re.compile(r'^#define (OPMUX_\w+)[ \t]+(-?\d+u?|"[^"]*")[ \t]*$', re.MULTILINE)
FIELD_NAME = re.compile(r"\(\*(\w+)\)|(\w+)(?:\[\d+\])?$")


def today():
    """The current header with the text of its parts in the places where it includes them."""
    return PART.sub(lambda found: (ROOT / "include" / found[1]).read_text(), TODAY.read_text())


class Header:
    """Parsed header: records ({name: (kind, [(field, text)])}), function types and constants."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        self.constants = dict(CONSTANT.findall(text))
        text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"\s+", " ", text)
        self.functions = {m[1]: m[0] for m in FUNCTION_TYPE.finditer(text)}
        self.records = {}
        for kind, tag, body, name in RECORD.findall(text):
            if tag != name:
                raise ValueError(f"{kind} {tag} is typedefed as {name}")
            self.records[name] = (kind, [self._field(f) for f in body.split(";") if f.strip()])
        found = len(re.findall(r"\btypedef (?:struct|union)\b", text))
        if found != len(self.records):
            raise ValueError(f"{found} structs and unions, but only {len(self.records)} parsed")

    @staticmethod
    def _field(text):
        text = text.strip()
        match = FIELD_NAME.search(text)
        if not match:
            raise ValueError(f"cannot parse the field: {text}")
        return match[1] or match[2], text


def compare_record(name, old, new):
    if new is None:
        return [f"{name}: gone"]
    if old[0] != new[0]:
        return [f"{name}: was a {old[0]}, is a {new[0]}"]
    problems = []
    for i, (field, text) in enumerate(old[1]):
        found = new[1][i][1] if i < len(new[1]) else "nothing"
        if found != text:
            problems.append(f"{name}.{field}: field {i} was '{text}', is '{found}'")
    if name in FROZEN and len(new[1]) > len(old[1]):
        problems.append(f"{name}: frozen, but has a new field '{new[1][len(old[1])][1]}'")
    return problems


def compare_values(old, new):
    problems = []
    for name, value in old.items():
        found = new.get(name, "gone")
        if name in MAY_GROW and found.isdigit() and int(found) >= int(value):
            continue
        if found != value:
            problems.append(f"{name}: was '{value}', is '{found}'")
    return problems


def unsized(header):
    return [f"{name}: does not start with 'uint32_t struct_size'"
            for name, (_, fields) in header.records.items()
            if name not in FROZEN and fields[0][1] != "uint32_t struct_size"]


def compare(released_text, today_text):
    """A list of incompatibilities; empty if every released plugin still works."""
    old, new = Header(released_text), Header(today_text)
    problems = []
    for name, record in old.records.items():
        problems += compare_record(name, record, new.records.get(name))
    problems += compare_values(old.functions, new.functions)
    problems += compare_values(old.constants, new.constants)
    return problems + unsized(new)


def missing_in_layout(table, header):
    listed = set(re.findall(r"^FIELD\((\w+), (\w+),", table, re.MULTILINE))
    return [f"{name}.{field}: not in layout.inc, run with --layout"
            for name, (_, fields) in header.records.items()
            for field, _ in fields if (name, field) not in listed]


def layout_program(header):
    lines = ["#include <opmux/abi.h>", "#include <stdio.h>", "int main(void) {"]
    for name, (kind, fields) in header.records.items():
        lines.append(f'printf("SIZE({name}, %zu)\\n", sizeof({name}));')
        for field, _ in fields:
            lines.append(f'printf("FIELD({name}, {field}, %zu, %zu)\\n", offsetof({name}, {field}),'
                         f" sizeof((({name}*)0)->{field}));")
        if kind == "struct":
            lines.append(f'puts("LAST({name}, {fields[-1][0]})");')
    return "\n".join(lines + ["}"])


def write_layout():
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        pathlib.Path(source).write_text(layout_program(Header(today())))
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-I", str(ROOT / "include"), source,
                        "-o", program], check=True)
        table = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    LAYOUT.write_text("/* Size, and offset and size of each field, on 64-bit Linux; written by\n"
                      "   tools/check_abi_prefix.py --layout. */\n" + table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layout", action="store_true", help="rewrite tests/abi/layout.inc")
    parser.add_argument("--freeze", action="store_true",
                        help="make the current header the reference (only before a release)")
    options = parser.parse_args()
    if options.freeze:
        RELEASED.write_text(today())
    if options.freeze or options.layout:
        write_layout()
    problems = compare(RELEASED.read_text(), today())
    problems += missing_in_layout(LAYOUT.read_text(), Header(today()))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
