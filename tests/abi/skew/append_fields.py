#!/usr/bin/env python3
"""Generates the header of a later minor version: every struct with a struct_size gets two more fields.

usage: append_fields.py ABI_H OUTPUT
"""
import pathlib
import re
import sys

STRUCT = re.compile(r"(typedef struct (opmux_\w+) \{\n  uint32_t struct_size;.*?)(\n\} \2;)", re.S)
MINOR = re.compile(r"#define OPMUX_ABI_MINOR (\d+)\n")
FEWEST = 17  # structs with a size; fails if the parser no longer recognizes the header


def appended(text):
    """The new header text and the number of extended structs."""
    made, count = STRUCT.subn(r"\1\n  uint64_t appended[2];\3", text)
    later = "#define OPMUX_ABI_MINOR {}\n#define OPMUX_ABI_APPENDED 1\n"
    return MINOR.sub(lambda found: later.format(int(found[1]) + 1), made), count


def main():
    source, output = map(pathlib.Path, sys.argv[1:])
    text, count = appended(source.read_text(encoding="utf-8"))
    if count < FEWEST or "OPMUX_ABI_APPENDED" not in text:
        sys.exit(f"{source}: only {count} structs grew")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
