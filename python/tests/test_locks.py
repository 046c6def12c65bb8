"""Frozen runtimes and lockfiles."""

import os
import subprocess
import sys

import numpy as np
import pytest

import opmux

WIDE, NARROW = np.ones((2, 32), "f4"), np.ones((2, 8), "f4")


@pytest.fixture
def world(runtime):
    """A runtime with the operator `pick`: red runs if N is a multiple of 16, else green."""
    runtime.define("pick(out Tensor y[..., N], Tensor x[..., N])")
    red = opmux.implementation("pick", "red.v1", kind="vendor", priority=200, runtime=runtime)(
        lambda x, *, out: None
    )
    red.verifier(lambda x: x.shape[-1] % 16 == 0 or "N must be a multiple of 16")
    opmux.implementation("pick", "green.v1", kind="vendor", priority=100, runtime=runtime)(
        lambda x, *, out: None
    )
    return runtime


def called(world, x):
    with opmux.report(world) as calls:
        world.op("pick")(x)
    return calls[-1]


def test_a_frozen_runtime_refuses_changes_and_keeps_its_choice(world):
    assert called(world, WIDE).implementation == "pick/red.v1"
    assert not world.frozen
    lock = world.freeze()
    assert world.frozen
    assert [choice.implementation for choice in lock.choices] == ["pick/red.v1"]
    for change in (
        lambda: world.set_policy(opmux.policy(prefer=["pick/green.v1"])),
        lambda: world.load_policy("opmux: 1\n"),
        lambda: world.define("other(out Tensor y[N], Tensor x[N])"),
        lambda: opmux.implementation("pick", "blue.v1", kind="vendor", runtime=world)(print),
    ):
        with pytest.raises(opmux.Frozen, match="create a new runtime to make changes"):
            change()
    assert called(world, WIDE).implementation == "pick/red.v1"
    assert not called(world, WIDE).fell_back


def test_what_was_not_decided_is_a_deviation_and_refused_with_strict(world):
    called(world, WIDE)
    world.freeze()
    other = called(world, NARROW)
    assert (other.implementation, other.fell_back) == ("pick/green.v1", True)
    assert "has no entry for this call of pick" in other.reason
    with (
        opmux.scope(strict=True, runtime=world),
        pytest.raises(opmux.Frozen, match="strict allows no other"),
    ):
        world.op("pick")(NARROW)


def test_a_lockfile_is_written_read_and_taken(world, tmp_path):
    assert opmux.decide(world.op("pick"), WIDE) == "pick/red.v1"
    path = str(tmp_path / "opmux.lock")
    world.lock().write(path)
    lock = opmux.Lockfile.read(path)
    assert str(lock) == str(world.lock()) and len(lock.digest) == 64
    assert lock.choices[0].op == "pick"
    world.check_lock(lock)
    world.freeze(lock)
    assert called(world, WIDE).implementation == "pick/red.v1"
    with pytest.raises(opmux.InvalidArgument, match="x.lock:1:1"):
        opmux.Lockfile.parse("no lock", "x.lock")


def test_a_lockfile_that_does_not_fit_is_refused_with_the_differences(world, runtime):
    called(world, WIDE)
    lock = world.lock()
    stranger = opmux.create_runtime(environment=[])
    with pytest.raises(opmux.Failed, match="operator pick does not exist"):
        stranger.freeze(lock)
    assert not stranger.frozen


def test_a_selector_picks_among_the_accepted_by_the_facts_that_it_reads(world):
    seen = []

    def green_for_few_rows(op, accepted, facts):
        seen.append((op, [candidate.id for candidate in accepted], facts))
        return "pick/green.v1" if facts["rows"] < 4 else None

    world.set_selector(green_for_few_rows, reads=["rows", "dtype(x)", "HQ"])
    assert called(world, WIDE).implementation == "pick/green.v1"
    assert called(world, np.ones((8, 32), "f4")).implementation == "pick/red.v1"
    both = ["pick/red.v1", "pick/green.v1"]
    assert seen[0] == ("pick", both, {"rows": 2, "dtype(x)": "f32", "HQ": None})
    world.set_selector(lambda op, accepted, facts: accepted[-1])
    assert called(world, WIDE).implementation == "pick/green.v1"
    world.set_selector(lambda op, accepted, facts: 1 / 0)
    assert called(world, WIDE).implementation == "pick/red.v1"
    world.set_selector(None)
    with pytest.raises(opmux.InvalidArgument, match="no operator has a fact"):
        world.set_selector(green_for_few_rows, reads=["dytpe(x)"])


STATIC = """
import numpy as np, opmux
with opmux.report() as calls:
    opmux.ops.softmax(np.ones((2, 8), "f4"))
print(opmux.default_runtime().frozen, calls.implementation)
"""


def test_the_default_runtime_runs_by_the_lockfile_that_the_environment_names(tmp_path):
    own = opmux.create_runtime(environment=[("OPMUX_PREFER", "reference")], backends=False)
    opmux.decide(own.op("softmax"), NARROW)
    path = tmp_path / "opmux.lock"
    own.lock().write(str(path))
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")},
        "OPMUX_LOCKFILE": str(path),
        "OPMUX_PREFER": "reference",
    }
    run = subprocess.run(
        [sys.executable, "-c", STATIC], env=variables, capture_output=True, text=True, check=False
    )
    assert run.stdout == "True softmax/reference.scalar\n", run.stderr
    del variables["OPMUX_PREFER"]
    run = subprocess.run(
        [sys.executable, "-c", STATIC], env=variables, capture_output=True, text=True, check=False
    )
    assert "no longer matches this runtime" in run.stderr
