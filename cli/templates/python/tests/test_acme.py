"""Tests the plugin: which implementation ran, its results, and what it refuses."""

import numpy as np
import opmux
import pytest

ONLY = "rms_norm/acme.*"


def rows_of(count, width):
    return np.random.default_rng(1).standard_normal((count, width)).astype(np.float32)


def test_opmux_found_the_plugin():
    assert "acme" in [plugin.name for plugin in opmux.plugins() if plugin.loaded]


@pytest.mark.parametrize(("count", "width"), [(1, 2), (3, 64), (5, 1000)])
def test_agrees_with_the_reference(count, width):
    x, weight = rows_of(count, width), rows_of(1, width)[0]
    with opmux.require("reference"):
        expected = opmux.ops.rms_norm(x, weight)
    with opmux.require(ONLY), opmux.expect("rms_norm/acme.numpy"):
        found = opmux.ops.rms_norm(x, weight)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_refuses_an_eps_of_zero():
    with opmux.require(ONLY), pytest.raises(opmux.NoCandidate, match="eps must be above 0"):
        opmux.ops.rms_norm(rows_of(1, 2), eps=0.0)
