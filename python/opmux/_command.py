"""The `opmux` command: runs the packaged program; `doctor` runs in Python, which it inspects
too."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from ._information import installed


def main() -> int:
    """Runs the command. Returns only for `doctor` and errors; otherwise the program replaces this
    process."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        from . import doctor

        return doctor.main(arguments[1:])
    program = installed("bin", "opmux")
    if not os.access(program, os.X_OK):
        print(f"opmux: no executable at {program}: install the wheel", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execv(program, ["opmux", *arguments, *_interpreter_for(arguments)])


def _interpreter_for(arguments: list[str]) -> list[str]:
    """Names this interpreter to a command that measures the calls of a process, because only
    Python has the kernels of vLLM."""
    tunes = arguments[:2] == ["tune", "run"] and "--python" not in arguments
    of_process = any(a.split("=")[0] in ("--from-pid", "--page") for a in arguments)
    if not (tunes and of_process) or find_spec("vllm") is None:
        return []
    return ["--python", sys.executable]
