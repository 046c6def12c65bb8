"""Tests of the refusals of implementation(stream=True), which need no device."""

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth


@pytest.fixture
def world(runtime):
    runtime.define("doubled(out Tensor y[..., H], Tensor x[..., H])")
    return runtime


class TestStream:
    def test_a_function_without_the_parameter_is_refused(self, world):
        with pytest.raises(
            opmux.InvalidArgument, match="needs a function with a parameter `stream`"
        ):

            @opmux.implementation("doubled", "npu.v1", vendor="npu", device="npu", stream=True,
                                  runtime=world)  # fmt: skip
            def kernel(x, *, out):
                pass

    def test_the_cpu_has_no_streams(self, world):
        with pytest.raises(opmux.InvalidArgument, match="device= says cpu"):

            @opmux.implementation("doubled", "cpu.v1", vendor="cpu", stream=True, runtime=world)
            def kernel(x, *, out, stream):
                pass

    def test_implementations_of_a_provider_agree(self, world):
        @opmux.implementation("doubled", "npu.v1", vendor="npu", device="npu", stream=True,
                              runtime=world)  # fmt: skip
        def first(x, *, out, stream):
            pass

        with pytest.raises(opmux.AlreadyExists, match="return before their work is done"):

            @opmux.implementation("doubled", "npu.v2", vendor="npu", device="npu", runtime=world)
            def second(x, *, out):
                pass

    def test_functions_without_a_schema_have_none(self):
        @opmux.dispatchable
        def unstreamed(x):
            return x

        with pytest.raises(opmux.InvalidArgument, match="stream= have no effect"):

            @opmux.implementation("unstreamed", "npu.v1", vendor="npu", stream=True)
            def kernel(x, stream):
                return x

        for given in ({"stream": True}, {"device": "npu"}, {"arch": ("9.0", "")}):
            with pytest.raises(opmux.InvalidArgument, match="stream= have no effect") as caught:
                unstreamed.implementation("npu.v1", vendor="npu", **given)
            assert caught.value.reason == "caps.value"

    def test_a_function_that_returns_its_result_gets_the_stream_too(self, world):
        opmux.name_device_type(321, "streamed")
        met = []

        @opmux.implementation("doubled", "streamed.v1", vendor="streamed", device="streamed",
                              stream=True, runtime=world)  # fmt: skip
        def kernel(x, stream):
            met.append(stream)
            return 2 * np.from_dlpack(x)

        assert kernel(np.ones(2), stream=7).tolist() == [2, 2] and met == [7]
