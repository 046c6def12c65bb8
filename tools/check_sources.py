#!/usr/bin/env python3
"""Checks every source file's length, width and characters.

usage: check_sources.py [ROOT]

A file with more than 600 lines fails, one with more than 400 gets a note. C and C++ files must stay
within 100 columns, and every source must be ASCII.
"""
import pathlib
import sys

FOLDERS = ("include", "src", "backends", "cli", "probe", "python", "benchmarks", "examples", "tests", "tools", "cmake",
           "operators", ".ci")
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".py", ".txt", ".cmake", ".in", ".map", ".schema", ""}
SKIPPED = {"__pycache__", "corpus"}  # inputs of fuzz targets are arbitrary bytes
CODE = {".h", ".hpp", ".c", ".cpp"}
MOST_LINES, MANY_LINES, MOST_COLUMNS = 600, 400, 100


def problems_of(name, data, suffix):
    """Problems found in a file's bytes."""
    try:
        lines = data.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        line = data[:error.start].count(b"\n") + 1
        return [f"{name}:{line}: non-ASCII character"]
    found = []
    if len(lines) > MOST_LINES:
        found.append(f"{name}: {len(lines)} lines, {MOST_LINES} allowed")
    if suffix in CODE:
        found += [f"{name}:{number}: {len(line)} columns, {MOST_COLUMNS} allowed"
                  for number, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS]
    return found


def sources(root):
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.is_file() and file.suffix in SUFFIXES and not SKIPPED & set(file.parts):
                yield file


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    count, problems = 0, []
    for file in sources(root):
        data, name = file.read_bytes(), file.relative_to(root)
        count += 1
        problems += problems_of(name, data, file.suffix)
        lines = data.count(b"\n")
        if MANY_LINES < lines <= MOST_LINES:
            print(f"note: {name} has {lines} lines")
    for problem in problems:
        print(problem)
    print(f"sources: {count} files, {len(problems)} problems")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
