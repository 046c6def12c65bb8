#!/usr/bin/env python3
"""Checks the exported and imported symbols of the built library.

usage: check_symbols.py LIBRARY [OBJECT...]

The library may export only opmux_* and opmux::, must export the type information of the exception
that programs catch, and may depend only on the C and C++ run-time
libraries. Its objects must not import functions that print, abort or exit.
"""
import re
import subprocess
import sys

# Names that belong to opmux, after the prefix of a demangled special symbol.
OWNER = re.compile(r"^(?:(?:typeinfo|typeinfo name|vtable|VTT|guard variable) for )?"
                   r"(?:opmux::|opmux_)")

FORBIDDEN = set("""
    abort exit _exit _Exit quick_exit __assert_fail
    _ZSt21__glibcxx_assert_failPKciS0_S0_
    printf vprintf fprintf vfprintf dprintf vdprintf
    __printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk __dprintf_chk __vdprintf_chk
    puts putchar putc fputs fputc fputs_unlocked perror psignal stdout stderr
    _ZSt4cout _ZSt4cerr _ZSt4clog _ZSt5wcout _ZSt5wcerr _ZNSt8ios_base4InitC1Ev
""".split())

NEEDED = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|ld-linux-[a-z0-9-]+)\.so(\.\d+)?$")

# Without it a program has a second type of the same name, and which of them a catch clause
# compares depends on the C++ library.
REQUIRED = {"typeinfo for opmux::Error", "typeinfo name for opmux::Error", "vtable for opmux::Error"}


def foreign_exports(names):
    """Demangled names outside opmux:: and opmux_."""
    return [name for name in names if not OWNER.match(name)]


def forbidden_imports(names):
    """Mangled names, possibly versioned, that the library must not use."""
    return [name for name in names if name.split("@")[0] in FORBIDDEN]


def foreign_libraries(names):
    return [name for name in names if not NEEDED.match(name)]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def exports(library):
    """Demangled names of all defined dynamic symbols."""
    for line in run("nm", "--dynamic", "--defined-only", "--demangle", library):
        yield line.split(maxsplit=2)[2]


def imports(objects):
    """(object, name) for every undefined symbol."""
    for path in objects:
        for line in run("nm", "--undefined-only", "--format=posix", path):
            yield path, line.split()[0]


def needed(library):
    for line in run("readelf", "--dynamic", "--wide", library):
        match = re.search(r"\(NEEDED\).*\[(.+)\]", line)
        if match:
            yield match[1]


def main():
    library = sys.argv[1]
    # CMake lists the precompiled header among the objects of a target.
    objects = [path for path in sys.argv[2:] if not path.endswith((".gch", ".pch"))]
    exported, imported = list(exports(library)), list(imports(objects))
    problems = [f"{library} exports {name}" for name in foreign_exports(exported)]
    problems += [f"{library} lacks {name}" for name in sorted(REQUIRED - set(exported))]
    problems += [f"{path} imports {name}" for path, name in imported if forbidden_imports([name])]
    problems += [f"{library} needs {name}" for name in foreign_libraries(needed(library))]
    if not exported or (objects and not imported):
        problems.append("no symbols found")
    for problem in problems:
        print(problem)
    print(f"symbols: {len(exported)} exported, {len(objects)} objects, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
