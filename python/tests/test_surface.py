"""Keyword arguments whose readers no other test would miss; see tools/surface."""

import os

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth


def unchanged(x, factor, mode):
    return x


def info(runtime, implementation):
    return next(
        each for op in runtime.list() for each in op.implementations if each.id == implementation
    )


@pytest.mark.parametrize(
    "promise", ["atomic_outputs", "deterministic", "batch_invariant", "capture_safe"]
)
def test_promises_of_an_implementation_are_listed(world, promise):
    opmux.implementation("twice", "mine.v1", runtime=world, **{promise: True})(unchanged)
    assert info(world, "twice/mine.v1").promises == [promise]
    assert info(world, "twice/own.body").promises == []


def test_serial_is_refused_because_python_functions_have_no_prepared_state(world):
    with pytest.raises(
        opmux.InvalidArgument, match="twice/mine.v1: serial= .* use a lock"
    ) as caught:
        opmux.implementation("twice", "mine.v1", serial=True, runtime=world)(unchanged)
    assert caught.value.reason == "python.option"


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (
            opmux.PluginOptions,
            {
                "folders": ["/opt/plugins"],
                "trust": "digest",
                "keyring": "/opt/keys",
                "digests": ["12ab"],
                "sealed": True,
                "probe": False,
                "max_bytes": 77,
                "require_confinement": True,
            },
        ),
        (
            opmux.StateOptions,
            {"folder": "/var/opmux", "crash_journal": "on", "state_page": True},
        ),
        (
            opmux.RecordOptions,
            {
                "folder": "/var/opmux",
                "inputs": True,
                "max_files": 3,
                "max_bytes": 77,
                "dump": "softmax:*:1",
            },
        ),
    ],
)
def test_options_keep_each_keyword(kind, given):
    usual, made = kind(), kind(**given)
    for name, value in given.items():
        assert getattr(made, name) == value != getattr(usual, name), name


def test_names_of_texts_appear_in_refusals(world, runtime):
    world.op("twice")(np.ones(3, "f4"))
    with pytest.raises(opmux.InvalidArgument, match=r"own\.yaml:1:"):
        world.load_policy("opmux: 2", name="own.yaml")
    for refuse in (runtime.freeze, runtime.check_lock):
        with pytest.raises(opmux.Failed, match=r"own\.lock no longer matches"):
            refuse(world.lock(), name="own.lock")


def test_a_selector_that_fails_is_named(world, caplog):
    world.set_selector(lambda op, accepted, facts: 1 / 0, name="shortest")
    world.op("twice")(np.ones(3, "f4"))
    assert any("shortest failed" in record.getMessage() for record in caplog.records)


def test_threads_of_a_runtime_are_limited():
    made = opmux.create_runtime(environment=[], threads=3)
    before = len(os.listdir("/proc/self/task"))
    made.op("rms_norm")(np.ones((2048, 2048), "f4"))
    assert len(os.listdir("/proc/self/task")) - before == 2
