"""Helpers that implement and call the operator of the fixture `world`."""

import numpy as np

import opmux

X = np.arange(8, dtype="f4")


def implement(world, name="mine.v1", **options):
    return opmux.implementation("twice", name, priority=200, runtime=world, **options)


def call(world, *args, expect="twice/mine.v1", **kwargs):
    with opmux.report(world) as calls:
        y = world.op("twice")(*(args or (X,)), **kwargs)
    assert calls.implementation == expect
    return y, calls[-1]
