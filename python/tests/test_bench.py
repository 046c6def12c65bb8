"""The benchmark: its figures, and its limits with slack for a busy machine."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")
from opmux import bench


def run(*words):
    command = [sys.executable, "-m", "opmux.bench", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def figure(name="f", measured=1.0, limit=2.0, at_most=True):
    return bench.Figure(name, measured, limit, "x", at_most)


def test_slack_widens_limits_of_both_kinds():
    assert figure(measured=3, limit=2).ok(1) is False
    assert figure(measured=3, limit=2).ok(1.5) is True
    assert figure(measured=8, limit=10, at_most=False).ok(1) is False
    assert figure(measured=8, limit=10, at_most=False).ok(1.5) is True


EMPTY, OWN, FLA = "empty FASTCALL", "operator, torch reader", "fla.backends, three backends"


def rounds(**other):
    """Three rounds in which every subject but fla's takes 100 ns."""
    subjects = (EMPTY, OWN, "torch.ops no-op, Library.impl", "operator, DLPack exchange",
                "three bare exchange calls", "operator, bound plan", "operator, scope active",
                "operator, Python implementation", "dispatchable, three backends")  # fmt: skip
    return bench.Rounds(dict.fromkeys(subjects, [100.0] * 3) | other)


def test_the_lowest_figure_from_elsewhere_is_the_limit_of_a_native_operator():
    named = {one.name: one for one in bench.figures(rounds())}
    assert named["native operator, below every figure from elsewhere"].limit == 220


def test_what_was_not_compared_is_missed():
    slow = {"torch.ops no-op, Library.impl": [1000.0] * 3}
    missed = [one.name for one in bench.figures(rounds(**slow)) if not one.ok(1000)]
    assert missed == ["fla.backends / dispatchable"]
    assert all(one.ok(1) for one in bench.figures(rounds(**slow, **{FLA: [1000.0] * 3})))


def test_times_of_one_round_are_compared():
    run = rounds(**{EMPTY: [10.0, 20.0, 40.0], OWN: [30.0, 60.0, 120.0]})
    assert run.ratio(OWN, EMPTY) == 3
    assert run.ratio("operator, Python implementation", EMPTY, more_than=OWN) == 2
    assert run.medians()[OWN] == 60


@pytest.mark.full
def test_the_limits_hold_with_slack():
    ran = run("--check", "--json", "--slack", "3", "--rounds", "15")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(ran.stdout)
    assert all(one["ok"] for one in found["figures"])
    assert found["ns"]["empty FASTCALL"] > 0


@pytest.mark.full
def test_a_missed_limit_is_an_exit_code():
    assert run("--check", "--slack", "0.001", "--rounds", "3").returncode == 1
    assert run("--slack", "0.001", "--rounds", "3").returncode == 0
