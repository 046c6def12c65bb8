"""`python -m opmux.torch build` compiles the torch reader; `status` says whether it is in use."""

from __future__ import annotations

import argparse
import sys

import torch

from .. import _torch_reader
from .._errors import Error


def main() -> int:
    """Runs the command. Returns 0 if the reader is in use, else 1."""
    parser = argparse.ArgumentParser(prog="python -m opmux.torch")
    parser.add_argument(
        "command",
        choices=("build", "status"),
        help="build: compile the reader for the installed torch; status: show if it is in use",
    )
    command = parser.parse_args().command
    try:
        if command == "build":
            print(f"compiling a reader for torch {torch.__version__} ...", flush=True)
            print(_torch_reader.build())
        reason = _torch_reader.use()
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    print(f"reader for torch {torch.__version__}: {reason or 'in use'}")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
