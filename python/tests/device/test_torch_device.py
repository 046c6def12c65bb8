"""Torch tensors of a device whose memory the CPU cannot touch, as arguments of operators."""

import pytest
import torch

import opmux

pytestmark = pytest.mark.device

TWICE = [[2.0, 4.0, 6.0, 8.0], [10.0, 12.0, 14.0, 16.0]]


class TestDecisions:
    def test_each_device_runs_what_supports_its_architecture(self, runtime, driver, numbers):
        scale = runtime.op("protected.scale")
        for device, kernel in ((0, "old"), (1, "new")):
            x = numbers(device)
            with opmux.expect(f"protected.scale/protected.{kernel}", runtime=runtime):
                y = scale(x)
            assert y.device == x.device and y.cpu().tolist() == TWICE
            assert driver.ran(device) == [kernel]
        why = {c.id: (c.code, c.reason) for c in opmux.explain(scale, numbers(0)).candidates}
        assert why["protected.scale/protected.new"] == (
            "caps.arch",
            "the architecture of ext_dev:0 must be at least 9.0, is 8.6",
        )

    def test_kernels_of_the_cpu_are_refused(self, runtime, driver, numbers):
        silu = runtime.op("silu_and_mul")
        x = numbers()
        with opmux.expect("silu_and_mul/protected.kernel", runtime=runtime):
            y = silu(x)
        gate, up = x.cpu().chunk(2, dim=-1)
        assert torch.allclose(y.cpu(), torch.nn.functional.silu(gate) * up)
        codes = {c.id: c.code for c in opmux.explain(silu, x).candidates}
        assert codes.pop("silu_and_mul/protected.kernel") == ""
        assert set(codes.values()) == {"caps.device"}

    def test_tensors_of_two_devices_are_refused(self, runtime, driver, numbers):
        scale = runtime.op("protected.scale")
        with pytest.raises(opmux.InvalidArgument, match="ext_dev:1"):
            scale(numbers(0), out=numbers(1))
        with pytest.raises(opmux.InvalidArgument, match="cpu"):
            scale(numbers(0), out=torch.empty(2, 4))

    def test_a_launch_that_fails_falls_back(self, runtime, driver, numbers):
        driver.refuse(0, b"old")
        with opmux.report(runtime=runtime) as reports:
            y = runtime.op("protected.scale")(numbers())
        assert reports[0].implementation == "protected.scale/protected.any"
        assert reports[0].fell_back and y.cpu().tolist() == TWICE
        assert driver.ran(0) == ["any"]

    def test_a_constant_is_packed_on_the_device(self, runtime, driver, numbers):
        weight = torch.tensor([1.0, 10.0, 100.0, 1000.0]).to("protected:0")
        constant = runtime.constant(weight)
        with opmux.expect("protected.weigh/protected.packed", runtime=runtime):
            y = runtime.op("protected.weigh")(numbers(), constant)
        assert y.cpu().tolist() == [[1, 20, 300, 4000], [5, 60, 700, 8000]]
        assert driver.ran(0) == ["packed"]


class TestStreams:
    def test_a_call_is_enqueued_on_the_current_stream_of_torch(self, runtime, driver, numbers):
        x, y = numbers(1), numbers(1)
        stream = torch.Stream(device="protected:1")
        driver.hold(1)
        with stream:
            runtime.op("protected.scale")(x, out=y)
        assert driver.ran(1) == []
        driver.release(1)
        stream.synchronize()
        assert driver.ran(1) == ["new"] and y.cpu().tolist() == TWICE
        driver.fail_next(1, 719)
        with stream:
            runtime.op("protected.scale")(x, out=y)
        assert driver.synchronize(1, None) == 0, "another stream"
        assert driver.synchronize(1, stream.stream_id) == 3
        error, = runtime.health().devices  # fmt: skip
        assert error.device == "ext_dev:1" and error.health == "degraded"

    def test_so_is_the_call_of_a_plan(self, runtime, driver, numbers):
        x, y = numbers(1), numbers(1)
        plan = runtime.op("protected.scale").bind(x, out=y)
        stream = torch.Stream(device="protected:1")
        driver.fail_next(1, 719)
        with stream:
            plan(x, out=y)
        assert driver.synchronize(1, stream.stream_id) == 3
        plan(x, out=y)
        assert driver.synchronize(1, None) == 0 and y.cpu().tolist() == TWICE

    def test_a_lost_device_is_reported_and_the_other_one_works(self, runtime, driver, numbers):
        scale, x = runtime.op("protected.scale"), numbers(1)
        other, y = numbers(0), numbers(1)
        scale(x, out=y)
        driver.lose(1)
        with pytest.raises(opmux.DeviceLost):
            scale(x, out=y)
        with pytest.raises(opmux.NoCandidate, match=r"ext_dev:1 was lost"):
            scale(x, out=y)
        assert runtime.health().verdict == "fatal"
        assert scale(other).cpu().tolist() == TWICE
        assert driver.ran(0) == ["old"]


class TestPythonKernels:
    """Python functions as implementations on a device."""

    @pytest.fixture
    def kernel(self, runtime, driver):
        met = []

        @opmux.implementation(
            "protected.scale",
            "python.v1",
            vendor="python",
            priority=900,
            device="npu",
            arch=("9.0", ""),
            stream=True,
            runtime=runtime,
        )
        def scale(x, by, *, out, stream):
            met.append(stream)
            if by < 0:
                raise OSError("cannot scale by a negative number")
            driver.scale(x.device.index, out.data_ptr(), x.data_ptr(), x.numel(), by, stream)

        return met

    def test_it_runs_on_the_stream_of_the_call(self, runtime, driver, numbers, kernel):
        x, y = numbers(1), numbers(1)
        stream = torch.Stream(device="protected:1")
        driver.hold(1)
        with stream, opmux.expect("protected.scale/python.v1", runtime=runtime):
            runtime.op("protected.scale")(x, out=y)
        assert kernel == [stream.stream_id] and driver.ran(1) == []
        driver.release(1)
        stream.synchronize()
        assert driver.ran(1) == ["python"] and y.cpu().tolist() == TWICE
        runtime.op("protected.scale")(x, out=y)
        assert kernel[1:] == [0], "the default stream"

    def test_its_architecture_is_compared_and_explained(self, runtime, driver, numbers, kernel):
        with opmux.expect("protected.scale/protected.old", runtime=runtime):
            runtime.op("protected.scale")(numbers(0))
        codes = {
            c.id: c.code
            for c in opmux.explain(runtime.op("protected.scale"), numbers(0)).candidates
        }
        assert codes["protected.scale/python.v1"] == "caps.arch" and kernel == []

    def test_it_falls_back_when_it_raises(self, runtime, driver, numbers, kernel):
        with opmux.report(runtime=runtime) as reports:
            y = runtime.op("protected.scale")(numbers(1), -1.0)
        assert reports[0].implementation == "protected.scale/protected.new"
        assert "cannot scale by a negative number" in reports[0].reason
        assert y.cpu()[0].tolist() == [-1, -2, -3, -4] and driver.ran(1) == ["new"]

    def test_it_is_a_suspect_of_later_errors(self, runtime, driver, numbers, kernel):
        x = numbers(1)
        driver.fail_next(1, 719)
        runtime.op("protected.scale")(x)
        assert driver.synchronize(1, None) == 3
        health = runtime.health()
        assert health.verdict == "degraded" and health.breakers == []
        stats, = [s for s in runtime.stats() if s.implementation.endswith("python.v1")]  # fmt: skip
        assert stats.failed == 0 and stats.calls == 1
