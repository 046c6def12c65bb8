"""`default_enable=False`: a backend that is used only if it is switched on."""

import pytest
from python_world import call, implement

import opmux

pytestmark = pytest.mark.truth


def test_of_an_operator(world):
    implement(world, default_enable=False)(lambda x, factor, mode: x)
    call(world, expect="twice/own.body")
    world.enable_backend("mine", True)
    call(world)


def test_of_a_dispatchable_function(scan):
    scan.implementation("sleeper.one", default_enable=False)(lambda q: "sleeper")
    assert scan(1) == "body"
    refused = next(c for c in scan.explain(1).candidates if c.id == "test_scan/sleeper.one")
    assert refused.code == "backend.disabled"


def test_the_environment_switches_it_on(monkeypatch, scan):
    monkeypatch.setenv("OPMUX_BACKEND_SLEEPING", "1")
    opmux.reset_default_runtime()
    try:
        scan.implementation("sleeping.one", default_enable=False)(lambda q: "sleeping")
        assert scan(1) == "sleeping"
    finally:
        opmux.reset_default_runtime()


def test_implementations_of_one_backend_must_agree(world):
    implement(world, default_enable=False)(lambda x, factor, mode: x)
    implement(world, "mine.v2")(lambda x, factor, mode: x)
    with pytest.raises(opmux.AlreadyExists, match="off by default"):
        implement(world, "mine.v3", default_enable=True)(lambda x, factor, mode: x)
