"""The worker that races kernels of this interpreter for `opmux tune run --python`."""

import io
import subprocess
import sys
import time

import pytest

from opmux import _core, tune_worker
from opmux.tune_worker import Question

LINE = "race linear vllm.native onednn.dense threads=2 seconds=0.5 cold=64 x=bf16 rows=4 N=2048"


class Kernel:
    """A kernel whose two sides take these times per call."""

    op, name, build = "linear", "vllm.native", "v1"

    def __init__(self, ours, theirs):
        self.times = ours, theirs
        self.asked = []

    def calls(self, question):
        self.asked.append(question)

        def spin(seconds):
            def run(calls):
                end = time.perf_counter() + calls * seconds
                while time.perf_counter() < end:
                    pass

            return run

        return tuple(spin(seconds) for seconds in self.times)


def answers(externals, *lines):
    out = io.StringIO()
    tune_worker.serve(externals, iter(lines), out)
    return out.getvalue().splitlines()


def test_a_question_has_the_call_and_the_limits():
    question = Question.read(LINE)
    assert (question.op, question.candidate, question.against) == (
        "linear", "vllm.native", "onednn.dense",
    )  # fmt: skip
    assert question.number("threads") == 2 and question.words["x"] == "bf16"
    with pytest.raises(ValueError, match="unknown request"):
        Question.read("stop linear vllm.native onednn.dense")


def test_the_faster_kernel_wins():
    kernel = Kernel(40e-6, 20e-6)
    said = answers([kernel], LINE)
    assert said[:2] == ["candidate linear vllm.native v1", "ready"] and said[-1] == "end"
    point = dict(line.partition(" ")[::2] for line in said[2:-1])
    assert point["baseline"] == "onednn.dense@" and point["winner"] == "vllm.native"
    name, ratio, low, high, rounds = point["compared"].split()
    assert name == "vllm.native@v1" and int(rounds) >= 8
    assert float(low) <= float(ratio) <= float(high) < 0
    assert kernel.asked == [Question.read(LINE)]


def test_what_cannot_be_raced_is_an_answer_and_not_an_end():
    class Wrong(Kernel):
        def calls(self, question):
            raise ArithmeticError("the result of vllm.native is off by 1 of its norm")

    said = answers([Wrong(0, 0)], LINE, "nonsense", LINE.replace("vllm.native", "other.own"))
    assert said[2:] == [
        "error ArithmeticError: the result of vllm.native is off by 1 of its norm", "end",
        "error ValueError: not enough values to unpack (expected at least 4, got 1)", "end",
        "error ValueError: there is no linear/other.own here", "end",
    ]  # fmt: skip


def test_a_race_raises_what_a_function_raises():
    def fails(calls):
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        _core.race([fails, fails], 1, 0.1)
    with pytest.raises(ValueError, match="2 to 16 candidates"):
        _core.race([fails], 1, 0.1)


def test_a_disturbed_race_names_the_disturbance():
    result = _core.race([lambda calls: time.sleep(1e-3)] * 2, 1, 0.0)
    assert result.ended_by_time and result.winner == 0
    text = tune_worker.text_of(Question.read(LINE), "v1", result)
    assert "rigor quick" in text and "compared" not in text


def test_without_an_engine_there_are_no_kernels():
    program = "import sys; sys.modules['vllm'] = None; from opmux import tune_worker as t; t.main()"
    done = subprocess.run(
        [sys.executable, "-c", program], input="", capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout == "ready\n", done.stderr
    assert "vLLM's kernels cannot be measured" in done.stderr
