"""Races kernels that only this interpreter has, for `opmux tune run --python`.

An engine such as vLLM has kernels that opmux does not run. They are candidates all the same,
because the engine may keep a kernel where that is the fastest. The command starts this program in
the engine's environment and asks it to race such a kernel against an implementation of opmux,
called from Python as the engine calls both.

    python -m opmux.tune_worker

First it prints the kernels that it can race, one line `candidate OPERATOR NAME BUILD` each, and
`ready`. Then it reads questions, one in each line:

    race linear vllm.native onednn.dense threads=2 seconds=3 cold=67108864 x=bf16 ... rows=4 N=2048

and answers each with a measured point as `opmux tune run` stores them, or with `error TEXT`, and
`end`. It ends with its input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import IO, Protocol

from . import _core

Call = Callable[[int], None]


@dataclass(frozen=True)
class Question:
    """A race of an external kernel against an implementation of opmux, for one call."""

    op: str
    candidate: str
    against: str
    words: dict[str, str]

    def number(self, name: str) -> int:
        """Returns a size of the call, or one of the race's limits."""
        return int(self.words[name])

    @staticmethod
    def read(line: str) -> Question:
        """Reads a line `race OP CANDIDATE IMPLEMENTATION NAME=VALUE...`; raises ValueError."""
        word, op, candidate, against, *rest = line.split()
        if word != "race":
            raise ValueError(f"unknown request '{word}'")
        return Question(op, candidate, against, dict(pair.split("=", 1) for pair in rest))


class External(Protocol):
    """A kernel that the program itself runs, and opmux does not."""

    @property
    def op(self) -> str:
        """The operator that it stands for."""
        ...

    @property
    def name(self) -> str:
        """The id without the operator: "vllm.native"."""
        ...

    @property
    def build(self) -> str:
        """The versions of the packages that have it."""
        ...

    def calls(self, question: Question) -> tuple[Call, Call]:
        """Returns functions that call opmux and the kernel, as often as their argument says. Raises
        ArithmeticError if their results differ."""
        ...


def _externals() -> list[External]:
    """The kernels of the engines that are installed. An engine that cannot be imported has none."""
    try:
        found: list[External] = import_module("opmux.vllm._native_linear").externals()
    except Exception as error:
        print(f"opmux: vLLM's kernels cannot be measured: {error}", file=sys.stderr)
        return []
    return found


def text_of(question: Question, build: str, result: _core.RaceResult) -> str:
    """A point in the form that `opmux tune run` reads: the implementation of opmux is the baseline,
    whose build the command knows."""
    ours, theirs = f"{question.against}@", f"{question.candidate}@{build}"
    standing = result.standings[1]
    days = (date.today() - date(1970, 1, 1)).days
    lines = [
        f"baseline {ours}",
        f"winner {question.candidate if result.winner == 1 else question.against}",
        f"rigor {'quick' if result.ended_by_time else 'full'}",
        f"day {days}",
    ]
    if result.ended_by_time and result.dropped > 0:
        lines.append(f"dropped {result.dropped} {result.noise}")
    if abs(standing.low) != float("inf") and abs(standing.high) != float("inf"):
        ratio = f"{standing.log_ratio:.6f} {standing.low:.6f} {standing.high:.6f}"
        lines.append(f"compared {theirs} {ratio} {standing.rounds}")
    return "\n".join(lines)


def _answer(externals: list[External], line: str) -> str:
    question = Question.read(line)
    for external in externals:
        if (external.op, external.name) == (question.op, question.candidate):
            result = _core.race(
                list(external.calls(question)), question.number("threads"),
                float(question.words["seconds"]),
            )  # fmt: skip
            return text_of(question, external.build, result)
    raise ValueError(f"there is no {question.op}/{question.candidate} here")


def serve(externals: list[External], questions: Iterator[str], answers: IO[str]) -> None:
    """Answers questions until there are no more."""

    def say(text: str) -> None:
        answers.write(text + "\n")
        answers.flush()

    for external in externals:
        say(f"candidate {external.op} {external.name} {external.build}")
    say("ready")
    for line in questions:
        try:
            say(_answer(externals, line))
        except Exception as error:
            say("error " + " ".join(f"{type(error).__name__}: {error}".split()))
        say("end")


def main() -> int:
    """Answers questions from standard input. Libraries that print do not disturb the answers."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(_externals(), iter(sys.stdin.readline, ""), answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
