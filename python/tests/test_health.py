"""Circuit breakers: opened by failures, probed again, and forced by hand."""

import json
import time

import numpy as np
import pytest

import opmux

X = np.ones((4, 8), "f4")


class Ward:
    """Two implementations of one operator; the first fails while `fails` is set."""

    def __init__(self):
        sources = opmux.SourceOptions()
        sources.own_thread = False
        self.runtime = opmux.create_runtime(environment=[], backends=False, sources=sources)
        self.fails = False
        self.runtime.define("heal(out Tensor y[..., N], Tensor x[..., N])")
        add = opmux.implementation
        add("heal", "weak.v1", kind="vendor", priority=200, runtime=self.runtime)(self.weak)
        add("heal", "firm.v1", kind="vendor", priority=100, runtime=self.runtime)(self.firm)

    def weak(self, x, *, out):
        if self.fails:
            raise RuntimeError("oh")

    def firm(self, x, *, out):
        pass

    def ran(self):
        with opmux.report(self.runtime) as calls:
            self.runtime.op("heal")(X)
        return calls.implementation

    def wait(self, seconds):
        self.runtime.tick(time.monotonic() + seconds)


@pytest.fixture
def ward():
    return Ward()


def test_what_fails_five_times_rests_and_is_tried_again(ward):
    heard = []
    ward.runtime.on_breaker(heard.append)
    assert ward.ran() == "heal/weak.v1"
    assert ward.runtime.health().verdict == "healthy"
    ward.fails = True
    for _ in range(5):
        assert ward.ran() == "heal/firm.v1"
    report = ward.runtime.health()
    assert report.verdict == "degraded"
    assert [(b.implementation, b.state) for b in report.breakers] == [("heal/weak.v1", "open")]
    assert report.breakers[0].why == "too many consecutive failures"
    assert report.breakers[0].change == heard[-1].change
    assert 20_000 < report.breakers[0].next_probe_ms <= 33_000
    ward.fails = False
    assert ward.ran() == "heal/firm.v1"
    ward.wait(40)
    assert [ward.ran() for _ in range(2)] == ["heal/weak.v1"] * 2
    assert [(e.before, e.after) for e in heard] == [
        ("closed", "open"),
        ("open", "half open"),
        ("half open", "closed"),
    ]


def test_a_report_says_who_rests_and_until_when(ward):
    ward.fails = True
    for _ in range(6):
        ward.ran()
    ward.wait(1)
    with opmux.report(ward.runtime) as calls:
        ward.runtime.op("heal")(X)
    assert calls.fell_back
    assert calls.reason.startswith(
        "heal/weak.v1 is open: circuit breaker opened once, next probe in "
    )


def test_by_hand_an_implementation_is_isolated_and_closed(ward):
    ward.runtime.force_breaker("heal/weak.v1", "isolate")
    assert ward.ran() == "heal/firm.v1"
    listed = {i.id: i.breaker for o in ward.runtime.list() for i in o.implementations}
    assert (listed["heal/weak.v1"], listed["heal/firm.v1"]) == ("isolated", "closed")
    assert json.loads(ward.runtime.health().to_json())["breakers"][0]["state"] == "isolated"
    ward.runtime.force_breaker("heal/weak.v1", "close")
    ward.wait(1)
    assert ward.ran() == "heal/weak.v1"


def test_wrong_force_is_refused(ward):
    with pytest.raises(ValueError, match="'open', 'close' or 'isolate'"):
        ward.runtime.force_breaker("heal/weak.v1", "shut")
    with pytest.raises(opmux.NotFound, match="heal/weak.v1"):
        ward.runtime.force_breaker("heal/weak.v2", "open")
    with pytest.raises(opmux.Unsupported):
        ward.runtime.force_breaker("rms_norm/reference.scalar", "open")


def test_a_policy_sets_the_numbers(ward):
    ward.runtime.load_policy("opmux: 1\nbreaker: {consecutive_failures: 2, open_for: 5s}\n")
    ward.fails = True
    for _ in range(2):
        ward.ran()
    assert ward.runtime.health().breakers[0].next_probe_ms <= 5_500


def test_some_calls_are_computed_again_by_the_reference(ward):
    @opmux.implementation("softmax", "quick.v1", priority=900, runtime=ward.runtime)
    def quick(x, scale, *, out):
        out[...] = 1 / x.shape[-1]
        out[1, 3] = 7

    softmax = ward.runtime.op("softmax")
    ward.runtime.load_policy("opmux: 1\nshadow: {every: 1, share: 1}\n")
    assert softmax(X)[1, 3] == 7
    assert ward.runtime.health().shadow.waiting == 1
    ward.wait(1)
    shadow = ward.runtime.health().shadow
    assert (shadow.every, shadow.waiting) == (1, 0)
    found = {info.implementation: info for info in shadow.implementations}["softmax/quick.v1"]
    assert (found.compared, found.mismatches, found.not_finite, found.skipped) == (1, 1, 0, {})
    assert (found.last.element, found.last.got, found.last.expected) == ("y[1,3]", 7, 0.125)
    assert found.last.tolerance > 0
    assert "y[1,3] is 7, expected 0.125" in found.last.text
    assert found.last.what == "f32 H<=8 rows<=4 on cpu:0"
    assert softmax(X)[1, 3] == 0.125
    saved = json.loads(ward.runtime.health().to_json())["shadow"]["implementations"]
    assert [one["last"]["element"] for one in saved if "last" in one] == ["y[1,3]"]


def test_functions_of_the_module_ask_the_default_runtime():
    assert opmux.health().verdict in ("healthy", "degraded")
    with pytest.raises(opmux.NotFound):
        opmux.force_breaker("heal/nobody.v1", "open")
    opmux.on_breaker(lambda event: None)
