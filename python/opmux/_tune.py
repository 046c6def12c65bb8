"""Measuring the implementations of the calls that a function makes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from ._errors import Failed, InvalidArgument, NotFound
from ._information import installed
from ._runtime import default_runtime


def tune(
    function: Callable[[], Any],
    /,
    *,
    budget: int = 120,
    threads: int | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = True,
) -> str:
    """Measures which implementations are the fastest for the calls that `function` makes, and uses
    the result from then on. Calls `function` once, with every opmux call of the process sampled.
    Then `opmux tune run` measures the implementations of these calls in another process, those that
    took the most time first, for `budget` seconds; it does not know implementations that only this
    process has registered. `resume` lets it use what an earlier run measured with the same builds.
    Returns the table that the command prints.

    The rows are added to the bundle of this user, which later processes use too, or to the bundle
    `output`, which counts if OPMUX_TUNING names it. Raises InvalidArgument if `function` made no
    calls that can be measured: calls on the CPU that are not calls of bound plans.

        >>> print(opmux.tune(lambda: model(tokens), budget=60))  # doctest: +SKIP
    """
    runtime = default_runtime()
    runtime.sample_all_calls(True)
    try:
        function()
    finally:
        runtime.sample_all_calls(False)
    with tempfile.TemporaryDirectory(prefix="opmux-tune-") as folder:
        page = os.path.join(folder, "page")
        runtime.write_state_page(page)
        words = ["--page", page, "--budget", str(budget)]
        if threads is not None:
            words += ["--threads", str(threads)]
        if output is not None:
            words += ["--output", os.fspath(output)]
        if resume:
            words.append("--resume")
        printed = _run(words)
    runtime.reload_tuning()
    return printed


def _run(words: list[str]) -> str:
    """Runs the command with the package's program. Its progress is visible in a terminal."""
    program = installed("bin", "opmux")
    if not os.access(program, os.X_OK):
        raise NotFound(f"no executable at {program}: install the wheel", "python.command")
    shown = None if sys.stderr.isatty() else subprocess.PIPE
    ended = subprocess.run(
        [program, "tune", "run", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=shown,
        text=True,
        check=False,
    )
    if ended.returncode in (0, 1):  # 1: no row was measured, as the text says
        return ended.stdout
    said = (ended.stderr or "see above").strip()
    if ended.returncode == 2:
        raise InvalidArgument(said, "tune.cell")
    raise Failed(f"`opmux tune run` ended with {ended.returncode}: {said}", "tune.run")
