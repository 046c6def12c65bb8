"""Measured speeds: which files are found, and whether the policy lets them count."""

import threading
import time

import numpy as np
import pytest

import opmux


class Asked:
    """In place of the default runtime."""

    def __init__(self):
        self.checked = False

    def check_tuning(self):
        self.checked = True

    def tuning(self):
        return []


def test_a_file_that_is_no_bundle_is_listed_with_the_reason(tmp_path):
    path = tmp_path / "absent.bundle"
    runtime = opmux.Runtime(environment=[("OPMUX_TUNING", str(path))], backends=False)
    runtime.check_tuning()
    (found,) = [each for each in runtime.tuning() if each.path == str(path)]
    assert found.found_in == "OPMUX_TUNING" and "cannot be opened" in found.problem
    assert (found.rows, found.used, found.aged, found.foreign) == (0, 0, 0, 0)
    assert (found.stale, found.damaged) == (0, 0)


def test_rows_of_all_operators_are_read_if_it_is_asked_for(monkeypatch):
    asked = Asked()
    monkeypatch.setattr("opmux._information.default_runtime", lambda: asked)
    assert opmux.tuning() == [] and not asked.checked
    assert opmux.tuning(check=True) == [] and asked.checked


def test_a_policy_says_whether_they_count():
    runtime = opmux.Runtime(environment=[], backends=False)
    for mode in ("off", "bundle", "online", "online_apply"):
        runtime.set_policy(opmux.policy(tuning=mode))
        assert [s.value for s in runtime.settings() if s.key == "tuning"] == [mode]
    assert opmux.policy().tuning is None
    with pytest.raises(ValueError, match="'online' or 'online_apply'"):
        opmux.policy(tuning="sometimes")


def test_a_runtime_measures_its_calls_and_uses_what_it_found():
    """With the background thread, as in a service."""
    runtime = opmux.create_runtime(environment=[("OPMUX_NUM_THREADS", "1")], backends=False)
    runtime.define("twice(out Tensor y[N], Tensor x[N])")

    def add(name, seconds, **options):
        @opmux.implementation("twice", name, runtime=runtime, **options)
        def body(x, *, out):
            end = time.perf_counter() + seconds
            out[:] = x * 2  # arrays, or tensors if torch is imported
            while time.perf_counter() < end:
                pass

    add("own.body", 1e-3, kind="reference")
    add("acme.slow", 300e-6, priority=300)
    add("acme.fast", 50e-6, priority=200, build="acme-1")
    runtime.load_policy("opmux: 1\ntuning: {online: apply}\nshadow: {every: 1, share: 1.0}\n")
    x = np.ones(8, "f4")
    end = time.monotonic() + 60
    for _ in range(8):
        runtime.op("twice")(x)
    # Functions in Python that are raced need the interpreter, which is free while this one waits.
    while not runtime.proposals() and time.monotonic() < end:
        threading.Event().wait(0.05)
    (found,) = runtime.proposals()
    assert (found.op, found.implementation) == ("twice", "twice/acme.fast")
    assert found.baseline == "twice/acme.slow" and found.cell == "f32,f32 N=8 threads=1 eager"
    assert 1 < found.low <= found.speed <= found.high and found.rounds >= 8
    assert found.applied and found.why_not == "" and found.time > 1.7e9
    with opmux.report(runtime) as calls:
        runtime.op("twice")(x)
    assert calls.implementation == "twice/acme.fast"
