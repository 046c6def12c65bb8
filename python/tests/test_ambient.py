"""Ambient facts: torch's modes and those of scopes, in rules and verifiers of operators and of
dispatchable functions; and verifiers that read something besides facts."""

import contextlib
import os
import sys

import numpy as np
import pytest
from dispatchable_cases import counted
from python_world import X, call, implement

import opmux
from opmux import _core

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.truth


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def autocast():
    return torch.autocast("cpu", torch.bfloat16)


MODES = {
    "grad": torch.enable_grad,
    "inference": torch.inference_mode,
    "deterministic": deterministic,
    "autocast": autocast,
}


@contextlib.contextmanager
def plain():
    """A block in which no mode of torch is on."""
    with torch.no_grad():
        yield


OTHER = "twice/other.body"


@pytest.fixture
def world(world):
    """With a second implementation that accepts tensors of every library."""
    opmux.implementation("twice", "other.body", kind="reference", priority=60, runtime=world)(
        lambda x, factor, mode: x
    )
    return world


class TestTorch:
    @pytest.mark.parametrize("name", MODES)
    def test_states_its_modes(self, reader, name):
        with plain():
            assert not opmux.ambient(name)
            with MODES[name]():
                assert opmux.ambient(name)
            assert not opmux.ambient(name)

    def test_states_grad_mode_inside_inference_mode(self, reader):
        with torch.inference_mode():
            assert not opmux.ambient("grad")
            with torch.enable_grad():
                assert torch.is_grad_enabled() and opmux.ambient("grad")

    def test_unknown_fact(self):
        with pytest.raises(ValueError, match="grad, capturing"):
            opmux.ambient("weather")
        with pytest.raises(ValueError, match="grad, capturing"):
            opmux.options(facts=["weather"])


class TestOperators:
    """Each test asserts which implementation ran."""

    def checked(self, world, check, **options):
        mine = implement(world, **options)(lambda x, factor, mode: x)
        asked = []

        @mine.verifier
        def verify(x, factor, mode):
            asked.append(1)
            return check()

        return asked

    @pytest.mark.parametrize(("name", "getter"), [
        ("grad", lambda: torch.is_grad_enabled()),
        ("inference", lambda: torch.is_inference_mode_enabled()),
        ("autocast", lambda: torch.is_autocast_enabled("cpu")),
    ])  # fmt: skip
    def test_a_verifier_that_asks_torch_is_asked_for_each_mode(self, world, reader, name, getter):
        x = torch.zeros(8)
        asked = self.checked(world, lambda: not getter() or "only without it")
        with plain():
            call(world, x)
            call(world, x)
            with MODES[name]():
                call(world, x, expect=OTHER)
            call(world, x)
            once = len(asked)
            for _ in range(3):
                call(world, x)
        assert len(asked) == once

    def test_an_alias_of_a_getter_is_found(self, world):
        from torch import is_grad_enabled

        self.checked(world, lambda: not is_grad_enabled() or "only without grad")
        with torch.no_grad():
            call(world)
        with torch.enable_grad():
            call(world, expect=OTHER)

    def test_inference_only_by_a_rule(self, world, reader):
        implement(world)(lambda x, factor, mode: x)
        world.set_policy(opmux.policy(rules=[opmux.rule(
            op="twice", when=opmux.Condition.ambient("grad"), deny=["vendor"])]))  # fmt: skip
        x = torch.zeros(8)
        with torch.no_grad():
            call(world, x)
        with torch.enable_grad():
            call(world, x, expect=OTHER)
        with torch.no_grad():
            call(world, x)

    def test_scopes_state_facts(self, world):
        asked = self.checked(world, lambda: not opmux.ambient("training") or "inference only")
        call(world)
        with opmux.options(facts=["training"]):
            assert opmux.ambient("training")
            call(world)  # a scope of another runtime
        with opmux.scope(facts=["training"], runtime=world), opmux.scope(runtime=world):
            call(world, expect=OTHER)
        call(world)
        assert len(asked) <= 4

    def test_deterministic_needs_the_promise(self, world):
        implement(world)(lambda x, factor, mode: x)
        opmux.implementation("twice", "mine.same", priority=150, deterministic=True, runtime=world)(
            lambda x, factor, mode: x
        )
        call(world)
        with deterministic():
            call(world, expect="twice/mine.same")

    def test_an_environment_variable_is_read_for_every_call(self, world, monkeypatch, caplog):
        asked = self.checked(world, lambda: os.environ.get("ACME_OFF") is None or "ACME_OFF is set")
        monkeypatch.delenv("ACME_OFF", raising=False)
        call(world)
        once = len(asked)
        call(world)
        assert len(asked) == once + 1
        monkeypatch.setenv("ACME_OFF", "1")
        call(world, expect=OTHER)
        monkeypatch.delenv("ACME_OFF")
        call(world)
        told = [r for r in caplog.records if r.opmux_code == "dispatch.decided_each_time"]
        assert [r.opmux_impl for r in told] == ["twice/mine.v1"]
        assert "os.environ['ACME_OFF']" in told[0].message
        assert "os.environ['ACME_OFF']" in opmux.explain(world.op("twice"), X).depends_on

    @pytest.mark.parametrize("read", [
        lambda: os.getenv("ACME_OFF"), lambda: "ACME_OFF" in os.environ, lambda: dict(os.environ),
        lambda: len(os.environ), lambda: torch.get_default_dtype(),
        lambda: torch.get_float32_matmul_precision(),
    ])  # fmt: skip
    def test_other_reads_that_are_no_facts(self, world, read):
        asked = self.checked(world, lambda: (read(), True)[1])
        call(world)
        once = len(asked)
        call(world)
        call(world)
        assert len(asked) == once + 2

    def test_a_profiler_is_left_in_place(self, world):
        seen = []

        def profiler(frame, event, about):
            seen.append(event)

        self.checked(world, lambda: True)
        sys.setprofile(profiler)
        try:
            world.op("twice")(X)
            assert sys.getprofile() is profiler
        finally:
            sys.setprofile(None)
        assert "call" in seen


class TestDispatchables:
    @pytest.mark.parametrize(("name", "getter"), [
        ("grad", lambda: torch.is_grad_enabled()),
        ("inference", lambda: torch.is_inference_mode_enabled()),
        ("autocast", lambda: torch.is_autocast_enabled("cpu")),
    ])  # fmt: skip
    def test_a_verifier_that_asks_torch_is_asked_for_each_mode(self, scan, reader, name, getter):
        asked = counted(scan, lambda q: not getter() or "only without it")
        q = torch.zeros(4)
        with plain():
            assert [scan(q), scan(q)] == ["acme", "acme"]
            assert asked.asked == 1
            with MODES[name]():
                assert scan(q) == "body"
            assert [scan(q), scan(q)] == ["acme", "acme"]
            assert name in scan.explain(q).depends_on

    def test_rules_read_them(self, scan):
        counted(scan, lambda q: True)
        opmux.set_policy(opmux.policy(rules=[opmux.rule(
            op="test_scan", when=opmux.Condition.ambient("grad"), deny=["vendor"])]))  # fmt: skip
        with torch.no_grad():
            assert [scan(1), scan(1)] == ["acme", "acme"]
        with torch.enable_grad():
            assert [scan(1), scan(1)] == ["body", "body"]
        with torch.no_grad():
            assert scan(1) == "acme"

    def test_scopes_state_facts(self, scan):
        counted(scan, lambda q: not opmux.ambient("training") or "inference only")
        assert scan(1) == "acme"
        with opmux.options(facts=["training"]):
            assert [scan(1), scan(1)] == ["body", "body"]
        assert scan(1) == "acme"

    def test_deterministic_needs_the_promise(self, scan):
        counted(scan, lambda q: True)
        assert scan(1) == "acme"
        with deterministic():
            assert [scan(1), scan(1)] == ["body", "body"]
            scan.implementation("same.one", deterministic=True)(lambda q: "same")
            assert scan(1) == "same"

    def test_an_environment_variable_is_read_for_every_call(self, scan, monkeypatch, caplog):
        asked = counted(scan, lambda q: os.getenv("ACME_OFF") is None or "ACME_OFF is set")
        monkeypatch.delenv("ACME_OFF", raising=False)
        assert [scan(1), scan(1)] == ["acme", "acme"]
        assert asked.asked == 2
        monkeypatch.setenv("ACME_OFF", "1")
        assert scan(1) == "body"
        told = [r for r in caplog.records if r.opmux_code == "dispatch.decided_each_time"]
        assert len(told) == 1 and "os.environ['ACME_OFF']" in told[0].message

    def test_a_misspelt_promise_is_refused(self, scan):
        with pytest.raises(TypeError, match="determinstic"):
            scan.implementation("acme.x", determinstic=True)(lambda q: "acme")


def test_a_call_restores_the_facts_of_the_thread(runtime):
    x = torch.zeros(4, 8)
    before = _core.torch_ambient()
    with torch.inference_mode():
        runtime.op("softmax")(x)
    assert _core.torch_ambient() == before


def test_a_call_inside_a_call_has_the_modes_around_it(world):
    seen = []

    @implement(world)
    def outer(x, factor, mode):
        with torch.no_grad():
            call(world, np.ones(4, "f8"), expect="twice/mine.inner")
        return x

    inner = implement(world, "mine.inner", dtypes=["f64"])(lambda x, factor, mode: x)

    @inner.verifier
    def check(x, factor, mode):
        seen.append(opmux.ambient("grad"))
        return not torch.is_grad_enabled() or "only without grad"

    outer.verifier(lambda x, factor, mode: x.dtype == "f32" or "only f32")
    with torch.enable_grad():
        call(world)
    assert seen and not any(seen)


def test_numpy_calls_have_them_too(world):
    TestOperators().checked(world, lambda: not torch.is_grad_enabled() or "only without grad")
    with torch.no_grad():
        call(world, np.ones(4, "f4"))
    with torch.enable_grad():
        call(world, np.ones(4, "f4"), expect=OTHER)
