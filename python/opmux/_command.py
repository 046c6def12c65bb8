"""The `opmux` command: the program inside the package, and `doctor`, which asks Python too."""

from __future__ import annotations

import os
import sys

from ._information import installed


def main() -> int:
    """Runs the command; returns only if Python does the work itself."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        from . import doctor

        return doctor.main(arguments[1:])
    program = installed("bin", "opmux")
    if not os.access(program, os.X_OK):
        print(f"opmux: there is no program at {program}: install the wheel", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execv(program, ["opmux", *arguments])
