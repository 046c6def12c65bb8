"""`python -m opmux.bench`: measures the cost of a call from Python and of its alternatives.

The subjects run in turn, round by round, so that noise on the machine affects all of them alike.
The result of a subject is the median of its rounds. Limits are for the medians of the ratios of
each round.
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


class Rounds:
    """The nanoseconds per call of each subject, round by round."""

    def __init__(self, of: dict[str, list[float]]) -> None:
        self._of = of

    def medians(self) -> dict[str, float]:
        """Returns the median of each subject's rounds."""
        return {name: statistics.median(rounds) for name, rounds in self._of.items()}

    def ratio(self, name: str, base: str, *, more_than: str = "") -> float:
        """Returns the median of the ratios of each round, whose times are from the same moment;
        with `more_than`, the ratios of what `name` takes more than that subject."""
        if name not in self._of:
            return 0
        less = self._of[more_than] if more_than else [0.0] * len(self._of[name])
        return statistics.median(
            (own - minus) / other
            for own, minus, other in zip(self._of[name], less, self._of[base], strict=True)
        )


def measure(all: list[subjects.Subject], rounds: int) -> Rounds:
    """Measures the subjects in turn; the better of two short runs counts in a round."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for subject in all:
                subject.rounds.append(min(subject.run(), subject.run()))
    finally:
        gc.enable()
    return Rounds({subject.name: subject.rounds for subject in all})


def figures(run: Rounds) -> list[Figure]:
    """Compares the subjects of one run, and the ratios with their limits."""
    empty, own = "empty FASTCALL", "operator, torch reader"
    return [
        Figure("torch reader / empty FASTCALL", run.ratio(own, empty), 4, "x"),
        Figure("torch reader / torch.ops no-op", run.ratio(own, "torch.ops no-op, Library.impl"),
               0.1, "x"),
        Figure("DLPack exchange / three bare exchange calls",
               run.ratio("operator, DLPack exchange", "three bare exchange calls"), 1.8, "x"),
        Figure("bound plan / empty FASTCALL", run.ratio("operator, bound plan", empty), 3.5, "x"),
        Figure("scope active / without", run.ratio("operator, scope active", own), 1.27, "x"),
        Figure("Python implementation - native one / empty FASTCALL",
               run.ratio("operator, Python implementation", empty, more_than=own), 11, "x"),
        Figure("native operator, below every figure from elsewhere", run.medians()[own],
               min(MEASURED_ELSEWHERE.values()), "ns"),
        # A missing fla.backends gives the ratio 0, which counts as a missed limit.
        Figure("fla.backends / dispatchable", run.ratio(_FLA, "dispatchable, three backends"), 10,
               "x", at_most=False),
    ]  # fmt: skip


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
        run = measure([*subjects.calls(), *subjects.dispatchables()], options.rounds)
    ns, found = run.medians(), figures(run)
    if options.json:
        rows = [{**asdict(one), "ok": one.ok(options.slack)} for one in found]
        print(json.dumps({"ns": ns, "figures": rows, "elsewhere": MEASURED_ELSEWHERE}, indent=2))
    else:
        _print(ns, found, options.slack)
    missed = not all(one.ok(options.slack) for one in found)
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
