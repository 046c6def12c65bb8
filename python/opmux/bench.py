"""`python -m opmux.bench`: measures the cost of a call from Python and of its alternatives.

The subjects run in turn, round by round, so that noise on the machine affects all of them alike.
The result of a subject is the median of its rounds. Limits are ratios within one run.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from typing import Any

from . import _bench_subjects as subjects

# Nanoseconds per cached call of no-op implementations, measured on another, idle machine.
MEASURED_ELSEWHERE = {
    "vllm-plugin-FL, CachedOp": 489,
    "vllm-plugin-FL, call_op strict": 1716,
    "vllm-plugin-FL, call_op": 2941,
    "vllm-plugin-FL first version, call_op": 8976,
    "FLA, an operation without backends": 220,
    "FLA, three backends, none available": 1466,
    "FLA, three backends, no verifier": 3078,
    "FLA, its kda registry, verifier accepts": 7258,
    "FLA, its kda registry, verifier refuses": 6700,
    "LayerZero, StaticDispatcher": 3971,
    "LayerZero, HotReload": 6486,
    "LayerZero, ConfigDriven": 10836,
    "LayerZero, DynamicDispatcher": 11999,
}

_FLA = "fla.backends, three backends"


@dataclass
class Figure:
    """One limit and the measured value; `at_most` is False where more is better."""

    name: str
    measured: float
    limit: float
    unit: str
    at_most: bool = True

    def ok(self, slack: float) -> bool:
        if self.at_most:
            return self.measured <= self.limit * slack
        return self.measured >= self.limit / slack


def measure(all: list[subjects.Subject], rounds: int) -> dict[str, float]:
    """Returns the median of each subject's rounds, in nanoseconds."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for subject in all:
                subject.rounds.append(min(subject.run(), subject.run()))
    finally:
        gc.enable()
    return {subject.name: statistics.median(subject.rounds) for subject in all}


def figures(ns: dict[str, float]) -> list[Figure]:
    """Compares the medians of one run with the limits."""
    empty, own = ns["empty FASTCALL"], ns["operator, torch reader"]
    found = [
        Figure("torch reader / empty FASTCALL", own / empty, 4, "x"),
        Figure("torch reader / torch.ops no-op", own / ns["torch.ops no-op, Library.impl"], 0.1,
               "x"),
        Figure("DLPack exchange / three bare exchange calls",
               ns["operator, DLPack exchange"] / ns["three bare exchange calls"], 1.8, "x"),
        Figure("bound plan / empty FASTCALL", ns["operator, bound plan"] / empty, 3.5, "x"),
        Figure("scope active, more than without", ns["operator, scope active"] - own, 20, "ns"),
        Figure("Python implementation, more than the native one",
               ns["operator, Python implementation"] - own, 300, "ns"),
        Figure("native operator, below every figure from elsewhere", own,
               min(MEASURED_ELSEWHERE.values()), "ns"),
    ]  # fmt: skip
    # A missing fla.backends gives the ratio 0, which counts as a missed limit.
    ratio = ns.get(_FLA, 0) / ns["dispatchable, three backends"]
    return [*found, Figure("fla.backends / dispatchable", ratio, 10, "x", at_most=False)]


def _print(ns: dict[str, float], found: list[Figure], slack: float) -> None:
    for name, value in ns.items():
        print(f"{name:<52} {value:10.1f} ns")
    if _FLA not in ns:
        print("fla.backends is not installed: pip install 'fla-core==0.6.*' einops triton")
    print("\nmeasured on another machine:")
    for name, number in MEASURED_ELSEWHERE.items():
        print(f"{name:<52} {number:10d} ns")
    print()
    for one in found:
        sign = "<=" if one.at_most else ">="
        verdict = "ok" if one.ok(slack) else "MISSED"
        print(f"{one.name:<52} {one.measured:10.2f} {one.unit:<2} {sign} {one.limit:g}  {verdict}")


def _arguments(words: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m opmux.bench", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--slack", type=float, default=1.0, help="factor for the limits")
    parser.add_argument("--rounds", type=int, default=61, help="number of rounds")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Measures and prints. Returns 1 on errors, and with `--check` if a limit was missed."""
    options = _arguments(words)
    try:
        import torch
    except ImportError:
        print("opmux.bench needs torch, which is not installed", file=sys.stderr)
        return 1
    if reason := subjects.use_module_reader():
        print(f"the torch reader cannot be used: {reason}", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    with torch.inference_mode():
        ns = measure([*subjects.calls(), *subjects.dispatchables()], options.rounds)
    found = figures(ns)
    if options.json:
        rows = [{**asdict(one), "ok": one.ok(options.slack)} for one in found]
        print(json.dumps({"ns": ns, "figures": rows, "elsewhere": MEASURED_ELSEWHERE}, indent=2))
    else:
        _print(ns, found, options.slack)
    missed = not all(one.ok(options.slack) for one in found)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
