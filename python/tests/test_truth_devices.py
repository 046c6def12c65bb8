"""Facts about devices and constants that were accepted or reported and read by nothing."""

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth

X = np.ones((2, 8), dtype=np.float32)


@pytest.fixture
def world(runtime):
    runtime.define("doubled(out Tensor y[..., H], Tensor x[..., H])")

    @opmux.implementation("doubled", "far.v1", vendor="far", priority=300, arch=("99.0", ""),
                          runtime=runtime)  # fmt: skip
    def far(x, *, out):
        out[...] = 0

    @opmux.implementation("doubled", "early.v1", vendor="early", priority=200, arch=("", "0.1"),
                          runtime=runtime)  # fmt: skip
    def early(x, *, out):
        out[...] = 1

    @opmux.implementation("doubled", "plain.v1", kind="reference", runtime=runtime)
    def plain(x, *, out):
        out[...] = 2 * x

    return runtime


def chosen(world):
    return opmux.explain(world.op("doubled"), X).chosen


class TestArchitecture:
    def test_a_range_refuses_a_device_without_one(self, world):
        assert world.op("doubled")(X).max() == 2
        why = opmux.explain(world.op("doubled"), X)
        codes = {c.id: c.code for c in why.candidates}
        assert codes["doubled/far.v1"] == codes["doubled/early.v1"] == "caps.arch"

    def test_the_program_states_one(self, world):
        world.set_architecture("cpu:0", "0.0.5")
        assert chosen(world) == "doubled/early.v1" and world.op("doubled")(X).max() == 1
        world.set_architecture("cpu", "99")
        assert chosen(world) == "doubled/far.v1" and world.op("doubled")(X).max() == 0

    def test_nonsense_is_refused(self, world):
        with pytest.raises(opmux.InvalidArgument):
            world.set_architecture("cpu:0", "sm_90")
        with pytest.raises(ValueError, match="is not a device"):
            world.set_architecture("abacus:0", "1.0")


def test_lists_show_what_describe_reported(runtime):
    linear, = [o for o in runtime.list() if o.name == "linear"]  # fmt: skip
    packing = [i.id for i in linear.implementations if "onednn" in i.id and i.available]
    if not packing:
        pytest.skip("no backend here packs weights")
    weight = runtime.constant(np.ones((16, 32), dtype=np.float32))
    with opmux.expect("linear/onednn.*", runtime=runtime):
        runtime.op("linear")(np.ones((8, 32), dtype=np.float32), weight)
    linear, = [o for o in runtime.list() if o.name == "linear"]  # fmt: skip
    shown = [i.instance for i in linear.implementations if i.instance]
    assert len(shown) == 1 and int(shown[0]["packed_bytes"]) > 0


class TestDeviceNames:
    def test_rules_take_aliases_and_names_of_vendors(self, world):
        opmux.name_device_type(310, "pythonic")
        opmux.name_device_type(310, "pythonic")
        rule = "{{op: doubled, when: 'device(x) == \"{}\"', prefer: [doubled/far.v1]}}"
        for word in ("npu", "rocm", "xpu", "mps", "ext_dev", "pythonic", "trn"):
            world.load_policy(f"opmux: 1\nrules: [{rule.format(word)}]\n", "test")
        with pytest.raises(opmux.InvalidArgument, match="did you mean 'rocm'"):
            world.load_policy(f"opmux: 1\nrules: [{rule.format('rocn')}]\n", "test")

    def test_a_name_has_one_meaning(self):
        opmux.name_device_type(311, "pythonic_two")
        for number, name in ((312, "pythonic_two"), (311, "other"), (12, "mine"), (313, "cuda")):
            with pytest.raises(opmux.InvalidArgument):
                opmux.name_device_type(number, name)

    def test_an_implementation_for_another_device_does_not_run_on_the_cpu(self, world):
        @opmux.implementation("doubled", "npu.v1", vendor="npu", priority=900, device="npu",
                              runtime=world)  # fmt: skip
        def npu(x, *, out):
            out[...] = 5

        assert world.op("doubled")(X).max() == 2
        why = {c.id: (c.code, c.reason) for c in opmux.explain(world.op("doubled"), X).candidates}
        assert why["doubled/npu.v1"] == ("caps.device", "device(y) must be ext_dev, is cpu")
        with pytest.raises(ValueError, match="unknown type of device"):
            opmux.implementation("doubled", "n.v1", vendor="n", device="abacus", runtime=world)(npu)


class TestSmallFloats:
    def test_a_weight_of_8_bit_floats(self, runtime):
        torch = pytest.importorskip("torch")
        torch.manual_seed(1)
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
            dtype = getattr(torch, name)
            weight, x = torch.randn(8, 32).to(dtype), torch.randn(4, 32).to(dtype)
            ones, scale = torch.ones(8), torch.full((4,), 0.5)
            with opmux.expect("linear_w8a8/reference.*", runtime=runtime):
                y = runtime.op("linear_w8a8")(x, weight, ones, scale, out=torch.empty(4, 8))
            expected = (x.float() @ weight.float().T) * 0.5
            assert torch.allclose(y, expected, atol=1e-4), name

    def test_a_weight_of_4_bit_floats(self, runtime):
        torch = pytest.importorskip("torch")
        if not hasattr(torch, "float4_e2m1fn_x2"):
            pytest.skip("this torch has no floats of 4 bits")
        bits = torch.randint(0, 256, (8, 16), dtype=torch.uint8)
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
        wide = torch.stack([table[(bits & 15).long()], table[(bits >> 4).long()]], dim=-1)
        x, scale = torch.randn(4, 32), torch.full((8, 2), 0.25).to(torch.float8_e4m3fn)
        with opmux.expect("linear_w4a16/reference.*", runtime=runtime):
            y = runtime.op("linear_w4a16")(x, bits.view(torch.float4_e2m1fn_x2), scale)
        assert torch.allclose(y, x @ (wide.reshape(8, 32) * 0.25).T, atol=1e-4)
