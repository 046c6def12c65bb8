"""torch functions as implementations, compared with the reference."""

# ruff: noqa: E402
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_samples import samples

import opmux
import opmux.torch_backend

SAMPLES = samples()


@pytest.fixture(autouse=True)
def registered():
    added = opmux.torch_backend.register()
    yield added
    for one in added:
        one.withdraw()


def reference(name, args):
    with opmux.require("reference"), opmux.expect(f"{name}/reference.scalar"):
        return getattr(opmux.ops, name)(*args)


@pytest.mark.parametrize("name", opmux.torch_backend.OPERATORS)
def test_torchs_functions_agree_with_the_reference(name):
    args = SAMPLES[name]
    if name == "attention":
        args = args[0], args[1][:, :3], args[2][:, :3], *args[3:]
    with opmux.prefer(f"{name}/torch.eager"), opmux.expect(f"{name}/torch.eager"):
        found = getattr(opmux.ops, name)(*args)
    torch.testing.assert_close(found, reference(name, args), atol=1e-5, rtol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("name", opmux.torch_backend.OPERATORS)
def test_compiled_ones_agree_with_the_reference(name):
    args = SAMPLES[name]
    with opmux.prefer(f"{name}/torch.compiled"), opmux.expect(f"{name}/torch.compiled"):
        found = getattr(opmux.ops, name)(*args)
    torch.testing.assert_close(found, reference(name, args), atol=1e-5, rtol=1e-5)


def test_they_stand_behind_opmuxs_own():
    with opmux.expect("softmax/simd.*"):
        opmux.ops.softmax(torch.randn(2, 8))
    ids = [c.id for c in opmux.explain("softmax", torch.randn(2, 8)).candidates]
    assert {"softmax/torch.eager", "softmax/torch.compiled"} <= set(ids)


def test_what_torch_does_otherwise_is_refused_with_a_reason():
    x, w = torch.randn(2, 8), torch.randn(8)
    told = opmux.explain("rms_norm", x, w, round_before_weight=True).candidates
    (ours,) = (c for c in told if c.id == "rms_norm/torch.eager")
    assert not ours.accepted
    assert "rounds once" in ours.reason
    q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 3, 4, 8)
    told = opmux.explain("attention", q, k, k, causal=True).candidates
    assert "aligns" in next(c.reason for c in told if c.id == "attention/torch.eager")


def test_tensors_of_other_libraries_are_taken_in_place():
    x = np.random.default_rng(0).standard_normal((2, 8)).astype("f4")
    with opmux.prefer("vendor:torch"), opmux.expect("softmax/torch.eager"):
        y = opmux.ops.softmax(x)
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-6)


@pytest.mark.truth
def test_they_are_added_to_the_runtime_that_is_given(runtime):
    added = opmux.torch_backend.register(runtime, compiled=False)
    listed = {one.id for op in runtime.list() for one in op.implementations}
    assert {one for one in listed if "/torch." in one} == {
        f"{name}/torch.eager" for name in opmux.torch_backend.OPERATORS
    }
    assert len(added) == len(opmux.torch_backend.OPERATORS)
