"""Constants: packed once, packed again when the data changes, dropped with their tensor."""

import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import opmux  # noqa: E402

PACKS = "linear/onednn.*"


@pytest.fixture
def linear(runtime):
    here = {i.id: i.available for o in runtime.list() if o.name == "linear"
            for i in o.implementations}  # fmt: skip
    if not any(on for name, on in here.items() if "onednn" in name):
        pytest.skip("nobody here packs weights")
    return runtime


def call(world, x, weight, **kwargs):
    with opmux.expect(PACKS, runtime=world), torch.no_grad():
        return world.op("linear")(x, weight, **kwargs)


def parameter(value=1.0):
    return torch.nn.Parameter(torch.full((16, 32), value))


X = torch.ones(8, 32)


class TestParameters:
    def test_are_packed_once(self, linear):
        weight = parameter()
        for _ in range(3):
            assert call(linear, X, weight).unique().tolist() == [32]
        assert linear.parameters == 1 and linear.packed_bytes > 0

    def test_are_packed_anew_when_they_change(self, linear):
        weight = parameter()
        call(linear, X, weight)
        with torch.no_grad():
            weight.mul_(2)
        assert call(linear, X, weight).unique().tolist() == [64]
        assert linear.parameters == 1

    def test_whose_data_moved(self, linear):
        weight = parameter()
        call(linear, X, weight)
        before = linear.packed_bytes
        for factor in range(2, 6):
            weight.data = torch.full((16, 32), float(factor))
            assert call(linear, X, weight).unique().tolist() == [32 * factor]
        assert linear.parameters == 1 and linear.packed_bytes <= 2 * before

    def test_that_go_take_their_copies_along(self, linear):
        weights = [parameter() for _ in range(3)]
        for weight in weights:
            call(linear, X, weight)
        packed = linear.packed_bytes
        assert linear.parameters == 3
        del weight
        weights.pop()
        gc.collect()
        assert linear.parameters == 2 and linear.packed_bytes < packed
        weights.clear()
        gc.collect()
        assert linear.parameters == 0 and linear.packed_bytes == 0

    def test_of_a_module(self, linear):
        layer = torch.nn.Linear(32, 16)
        y = call(linear, X, layer.weight, bias=layer.bias.detach())
        with torch.no_grad():
            torch.testing.assert_close(y, layer(X), rtol=1e-4, atol=1e-4)
        assert linear.parameters == 1  # the bias has no const slot

    def test_of_a_runtime_that_goes(self, linear):
        weight = parameter()
        other = opmux.create_runtime(environment=[])
        call(other, X, weight)
        del other
        gc.collect()
        del weight
        gc.collect()

    def test_of_two_runtimes(self, linear):
        other, weight = opmux.create_runtime(environment=[]), parameter()
        call(linear, X, weight)
        call(other, X, weight)
        assert linear.parameters == other.parameters == 1


class TestOthersAreNotRemembered:
    def test_plain_tensors(self, linear):
        call(linear, X, torch.ones(16, 32))
        assert linear.parameters == 0 and linear.packed_bytes == 0

    def test_inference_tensors(self, linear):
        with torch.inference_mode():
            weight = parameter()
            with opmux.expect(PACKS, runtime=linear):
                linear.op("linear")(X, weight)
        assert weight.is_inference()
        assert linear.parameters == 0 and linear.packed_bytes == 0

    def test_parameters_elsewhere(self, runtime):
        with torch.no_grad(), opmux.expect("rms_norm/simd.*", runtime=runtime):
            runtime.op("rms_norm")(X, torch.nn.Parameter(torch.ones(32)))
        assert runtime.parameters == 0


class TestConstant:
    def test_is_packed_once(self, linear):
        weight = linear.constant(torch.ones(16, 32))
        assert weight.packs == 0
        for _ in range(3):
            call(linear, X, weight)
        assert weight.packs == 1 and weight.packed_bytes == linear.packed_bytes > 0

    def test_changed(self, linear):
        tensor = torch.ones(16, 32)
        weight = linear.constant(tensor)
        call(linear, X, weight)
        tensor.mul_(3)
        weight.changed()
        assert weight.version == 1 and weight.packs == 0
        assert call(linear, X, weight).unique().tolist() == [96]

    def test_keeps_its_tensor(self, linear):
        weight = linear.constant(torch.full((16, 32), 2.0))
        gc.collect()
        assert call(linear, X, weight).unique().tolist() == [64]
        assert weight.tensor.shape == (16, 32)

    def test_goes_with_its_copies(self, linear):
        weight = linear.constant(torch.ones(16, 32))
        call(linear, X, weight)
        del weight
        gc.collect()
        assert linear.packed_bytes == 0

    def test_of_inference_tensors(self, linear):
        with torch.inference_mode():
            weight = linear.constant(torch.ones(16, 32))
            with opmux.expect(PACKS, runtime=linear):
                linear.op("linear")(X, weight)
        assert weight.packs == 1

    def test_of_numpy_and_of_parameters(self, linear):
        assert linear.constant(np.ones((16, 32), "f4")).tensor.shape == (16, 32)
        weight = linear.constant(parameter())
        assert call(linear, X, weight).unique().tolist() == [32]

    def test_in_a_slot_that_is_not_const(self, linear):
        weight = linear.constant(torch.full((32,), 2.0))
        with opmux.expect("rms_norm/simd.*", runtime=linear):
            y = linear.op("rms_norm")(X, weight)
        torch.testing.assert_close(y, torch.full((8, 32), 2.0))

    def test_as_the_only_tensor(self, linear):
        with opmux.expect("rms_norm/simd.*", runtime=linear):
            assert isinstance(linear.op("rms_norm")(linear.constant(X)), torch.Tensor)

    @pytest.mark.parametrize("value", [None, 1, "w", [1.0]], ids=str)
    def test_of_no_tensor(self, value):
        with pytest.raises(TypeError):
            opmux.constant(value)

    def test_of_the_default_runtime(self):
        weight = opmux.constant(torch.ones(16, 32))
        with opmux.expect("linear/*"):
            assert opmux.ops.linear(X, weight).unique().tolist() == [32]

    def test_plans_take_them(self, linear):
        weight = linear.constant(torch.ones(16, 32))
        plan = linear.op("linear").bind(X, weight)
        assert "onednn" in plan.implementation
        assert plan(X, weight).unique().tolist() == [32]
