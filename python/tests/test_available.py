"""`available=` of implementations of operators: asked when deciding, once, and explained."""

import threading

import numpy as np
import pytest
from python_world import X, call, implement

import opmux

pytestmark = pytest.mark.truth


class Probe:
    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def __call__(self):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def candidate(world):
    explained = opmux.explain(world.op("twice"), X)
    return next(c for c in explained.candidates if c.id == "twice/mine.v1")


def test_is_asked_once_when_first_a_candidate(world):
    probe = Probe(True)
    mine = implement(world, available=probe)(lambda x, factor, mode: x)
    assert probe.asked == 0
    call(world)
    mine.verifier(lambda x, factor, mode: True)  # registers it again
    call(world)
    assert probe.asked == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no driver", "no driver"),
        (False, "available() is false"),
        (None, "available() is false"),
        (ImportError("no module acme"), "ImportError: no module acme"),
        (3, "TypeError"),
    ],
    ids=str,
)
def test_refuses_with_the_reason(world, answer, reason):
    probe = Probe(answer)
    implement(world, available=probe)(lambda x, factor, mode: x)
    call(world, expect="twice/own.body")
    call(world, np.zeros(4, "f8"), expect="twice/own.body")
    assert candidate(world).code == "backend.unavailable"
    assert reason in candidate(world).reason
    assert probe.asked == 1
    listed = [i for o in world.list() if o.name == "twice" for i in o.implementations]
    own = next(i for i in listed if i.id == "twice/mine.v1")
    assert not own.available and reason in own.reason


def test_is_asked_for_implementations_registered_together(world):
    with opmux.register_together(world):
        implement(world, available=lambda: "no driver")(lambda x, factor, mode: x)
    call(world, expect="twice/own.body")


def test_threads_that_ask_at_the_same_time_do_not_wait_for_each_other(world):
    inside, go = threading.Event(), threading.Event()

    def available():
        inside.set()
        assert go.wait(10)
        return True

    implement(world, available=available)(lambda x, factor, mode: x)
    first = threading.Thread(target=call, args=(world,))
    first.start()
    assert inside.wait(10)
    second = threading.Thread(target=call, args=(world,))
    second.start()
    go.set()
    first.join(10)
    second.join(10)
    assert not first.is_alive() and not second.is_alive()
    call(world)
