"""Plain vLLM, opmux without measured speeds and opmux with them, for `tools/bench_vllm --tuned`."""
import contextlib
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import engine_run

KINDS = ("plain", "untuned", "tuned")
LEAST_MEDIAN = 0.99  # of the ratio to plain vLLM
LEAST_UPPER = 1.0  # of the upper bound of both ratios


def interval(values):
    """The median, and the values between which the true median is with 95 % certainty."""
    ordered = sorted(values)
    count, tail, rank = len(ordered), 0.0, 0
    while True:
        tail += math.comb(count, rank) / 2**count
        if tail > 0.025 or rank >= count // 2:
            break
        rank += 1
    return statistics.median(ordered), ordered[max(rank - 1, 0)], ordered[count - max(rank, 1)]


def variables(state):
    """The environment of an engine whose rows are in this folder; others of this user do not count."""
    return {"OPMUX_STATE_DIR": str(state), "OPMUX_TUNING": "", "OPMUX_STATE_PAGE": "1"}


def tune(engine, state, budget):
    """Measures the calls of a running engine, as a person would; returns what the command printed."""
    import opmux

    process = engine.process.pid
    end = time.monotonic() + 300
    while time.monotonic() < end:
        engine.seconds()
        with contextlib.suppress(opmux.NotFound):
            if any(runtime.cells for runtime in opmux.process_state(process, str(state)).runtimes):
                break
    for _ in range(2):
        engine.seconds()
    command = [pathlib.Path(sys.executable).parent / "opmux", "tune", "run", "--from-pid", str(process),
               "--budget", str(budget)]
    start = time.monotonic()
    done = subprocess.run(command, env={**os.environ, **variables(state)}, capture_output=True, text=True,
                          check=False)
    print(f"        tuned in {time.monotonic() - start:.0f} s, exit code {done.returncode}\n"
          + "".join(f"        {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
    if done.returncode != 0:
        sys.exit(done.stderr)


def measure(name, case, make_engine, rounds, starts, budget):
    """Times three engines in turn, each started several times. make_engine(request, plain, variables)."""
    times = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        states = {kind: pathlib.Path(folder) / kind for kind in KINDS}
        model = pathlib.Path(folder) / "model"
        model.mkdir()
        for state in states.values():
            state.mkdir(mode=0o700)
        engine_run.make_model(model, weights=not case.sizes, **case.sizes)
        engine = make_engine(case.request(str(model), False), False, variables(states["tuned"]))
        engine.tokens()
        tune(engine, states["tuned"], budget)
        engine.close()
        for start in range(starts):
            engines = {kind: make_engine(case.request(str(model), kind == "plain"), kind == "plain",
                                         variables(states[kind])) for kind in KINDS}
            for kind, engine in engines.items():
                engine.tokens()
                if start == 0 and kind == "tuned":
                    print(f"        {engine.state()}", flush=True)
            for _ in range(rounds):
                for kind in random.sample(KINDS, len(KINDS)):
                    times[kind].append(engines[kind].seconds())
            for engine in engines.values():
                engine.close()
    count = case.prompts * case.tokens
    found = {"case": name, "seconds": times, "starts": starts}
    for other in ("plain", "untuned"):
        ratios = [a / b for a, b in zip(times[other], times["tuned"])]
        found[other] = dict(zip(("median", "low", "high"), interval(ratios)))
    speeds = ", ".join(f"{kind} {count / statistics.median(times[kind]):.1f}" for kind in KINDS)
    shown = "; ".join("{} [{:.2f}, {:.2f}] of {}".format(f"{found[other]['median']:.2f}", found[other]["low"],
                                                       found[other]["high"], other) for other in ("plain", "untuned"))
    print(f"{name}: tuned is {shown}; {speeds} tokens/s; {len(times['plain'])} rounds, {starts} starts", flush=True)
    return found


def misses(found):
    """The limits that a case misses, as sentences."""
    missed = []
    if found["plain"]["median"] < LEAST_MEDIAN:
        missed.append(f"{found['case']}: {found['plain']['median']:.3f} of plain, limit {LEAST_MEDIAN}")
    for other in ("plain", "untuned"):
        if found[other]["high"] < LEAST_UPPER:
            missed.append(f"{found['case']}: surely slower than {other}: at most {found[other]['high']:.3f}")
    return missed
