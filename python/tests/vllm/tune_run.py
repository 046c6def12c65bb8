"""Tunes the worker of a living engine, which then uses the rows: tune_run.py REQUEST ANSWER."""

import json
import pathlib
import re
import resource
import subprocess
import sys
import time

import engine_run


def cells_of(pid):
    """The cells in the worker's status file."""
    import opmux

    return opmux.process_state(pid).runtimes[0].cells


def has_range(cells):
    """Whether two cells of linear differ only in their rows, so that the tuner measures a range."""
    fixed = [re.sub(r" rows=\d+", "", cell.dims) for cell in cells if cell.op == "linear"]
    return len(set(fixed)) < len(fixed)


def seconds_of_children():
    """Processor time, which does not depend on what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(request):
    """Returns the tokens before and after, the cells, and the output of the command."""
    from vllm import LLM, SamplingParams

    import opmux

    llm = LLM(seed=0, max_model_len=256, disable_log_stats=True, **request["engine"])
    sampling = SamplingParams(temperature=0, max_tokens=request["tokens"], ignore_eos=True)
    prompts = list(engine_run.PROMPTS)

    def generate():
        outputs = llm.generate(prompts, sampling, use_tqdm=False)
        return [list(o.outputs[0].token_ids) for o in outputs]

    before = generate()
    pid = llm.collective_rpc("opmux_state")[0]["pid"]
    end = time.monotonic() + 10 * engine_run.SECONDS
    while not has_range(cells_of(pid)):
        assert time.monotonic() < end, "no cells"
        generate()
    cells = [[cell.op, cell.dims, cell.threads] for cell in cells_of(pid)]
    opmux_command = str(pathlib.Path(opmux.__file__).parent / "bin/opmux")
    start = seconds_of_children()
    said = subprocess.run(
        [
            opmux_command,
            "tune",
            "run",
            "--from-pid",
            str(pid),
            "--budget",
            str(request["budget"]),
            "--python",
            sys.executable,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = seconds_of_children() - start
    rows = llm.collective_rpc("opmux_reload_tuning")[0]
    after = generate()
    return {
        "before": before, "after": after, "cells": cells, "said": said.stdout + said.stderr,
        "code": said.returncode, "seconds": seconds, "rows": rows,
        "state": engine_run.state(llm),
    }  # fmt: skip


if __name__ == "__main__":
    answer = run(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    pathlib.Path(sys.argv[2]).write_text(json.dumps(answer))
