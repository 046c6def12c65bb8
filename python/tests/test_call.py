"""Calls: arguments, outputs, and the implementation that ran."""

import numpy as np
import pytest

import opmux


def expected(x, w, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return rng.standard_normal((4, 8), "f4"), rng.standard_normal(8, "f4")


def test_allocates_the_output(arrays):
    x, w = arrays
    with opmux.expect("rms_norm/simd.*"):
        y = opmux.ops.rms_norm(x, w)
    np.testing.assert_allclose(y, expected(x, w), rtol=1e-5)


def test_writes_to_out_and_returns_it(arrays):
    x, w = arrays
    y = np.empty_like(x)
    with opmux.expect("rms_norm/reference.scalar"), opmux.require("reference"):
        assert opmux.ops.rms_norm(x, w, out=y) is y
    np.testing.assert_allclose(y, expected(x, w), rtol=1e-5)


def test_takes_keywords_and_leaves_out_defaults(arrays):
    x, w = arrays
    with opmux.expect("rms_norm/simd.*"):
        y = opmux.ops.rms_norm(weight=w, x=x, eps=0.5)
    np.testing.assert_allclose(y, expected(x, w, 0.5), rtol=1e-5)


def test_a_wrong_shape_names_both_numbers(arrays):
    x, _ = arrays
    with pytest.raises(opmux.InvalidArgument, match="H is 8 in x but 7 in weight") as raised:
        opmux.ops.rms_norm(x, np.ones(7, "f4"))
    assert raised.value.reason == "schema.dim_mismatch"


def test_an_unknown_operator_suggests_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'rms_norm'"):
        opmux.ops.rms_nrm


def test_operators_that_update_return_nothing():
    x, r = np.ones((2, 4), "f4"), np.ones((2, 4), "f4")
    with opmux.expect("fused_add_rms_norm/simd.*"):
        assert opmux.ops.fused_add_rms_norm(x, r) is None
    np.testing.assert_allclose(r, 2)
    np.testing.assert_allclose(x, 1, rtol=1e-6)


def test_read_only_outputs_are_refused(arrays):
    x, w = arrays
    y = np.empty_like(x)
    y.flags.writeable = False
    with pytest.raises((opmux.InvalidArgument, BufferError)):
        opmux.ops.rms_norm(x, w, out=y)


def test_a_read_only_output_harms_no_later_call(arrays):
    torch = pytest.importorskip("torch")
    x, w = arrays
    y = np.empty_like(x)
    y.flags.writeable = False
    with pytest.raises((opmux.InvalidArgument, BufferError)):
        opmux.ops.rms_norm(x, w, out=y)
    made = torch.empty(4, 8)
    with opmux.expect("rms_norm/simd.*"):
        assert opmux.ops.rms_norm(torch.from_numpy(x), torch.from_numpy(w), out=made) is made
