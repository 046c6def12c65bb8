"""Triton kernels as implementations, run by Triton's interpreter (TRITON_INTERPRET=1)."""

import pytest
import torch
import triton
import triton.language as tl

import opmux

pytestmark = pytest.mark.device

X = torch.arange(1.0, 2049.0).reshape(8, 256)


@triton.jit
def scaling(x, y, by, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * by, mask=at < n)


measured = []


def measure(launch, quantiles):
    """Stands for a clock, which the interpreter lacks: each configuration is faster than the one
    before."""
    launch()
    measured.append(launch)
    return [1.0 / len(measured)] * len(quantiles)


CONFIGS = [triton.Config({"BLOCK": block}) for block in (64, 128, 256)]


@triton.autotune(configs=CONFIGS, key=["n"], do_bench=measure)
@triton.jit
def tuned(x, y, by, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * by, mask=at < n)


@triton.jit
def broken(x, y, by, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(no_such_tensor + at, mask=at < n) * by, mask=at < n)  # noqa: F821


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture
def world():
    """A runtime with an operator and its reference, which computes without Triton."""
    made = opmux.create_runtime(environment=[])
    made.define("scaled(out Tensor y[..., H], Tensor x[..., H], float by = 2.0)")

    @opmux.implementation("scaled", "plain.v1", kind="reference", runtime=made)
    def plain(x, by, *, out):
        torch.mul(x, by, out=out)

    return made


def add(world, kernel, name="triton.v1"):
    """Registers a function that launches a Triton kernel; `ran` collects its launches."""
    ran = []

    @opmux.implementation(
        "scaled",
        name,
        vendor="triton",
        priority=300,
        dtypes=["f32"],
        multiple_of={"H": 64},
        contiguous=True,
        runtime=world,
    )
    def launch(x, by, *, out):
        ran.append(x.device.type)
        kernel(x, out, by)

    return ran


def with_block(kernel):
    return lambda x, out, by: kernel[grid](x, out, by, n=x.numel(), BLOCK=128)


def without_block(kernel):
    return lambda x, out, by: kernel[grid](x, out, by, n=x.numel())


class TestTriton:
    def test_a_kernel_is_chosen_and_computes(self, world):
        ran = add(world, with_block(scaling))
        with opmux.expect("scaled/triton.v1", runtime=world):
            y = world.op("scaled")(X, 3.0)
        assert torch.equal(y, 3 * X) and ran == ["cpu"]

    def test_its_refusal_is_explained(self, world):
        ran = add(world, with_block(scaling))
        narrow = X[:, :100].contiguous()
        with opmux.expect("scaled/plain.v1", runtime=world):
            world.op("scaled")(narrow)
        why = {
            c.id: (c.code, c.reason) for c in opmux.explain(world.op("scaled"), narrow).candidates
        }
        assert why["scaled/triton.v1"] == ("caps.multiple_of", "H must be a multiple of 64, is 100")
        assert ran == []

    def test_a_kernel_that_raises_falls_back(self, world):
        ran = add(world, with_block(broken))
        with opmux.report(runtime=world) as calls:
            y = world.op("scaled")(X)
        assert torch.equal(y, 2 * X) and ran == ["cpu"]
        assert calls.implementation == "scaled/plain.v1" and calls.fell_back
        assert calls.reason.startswith("scaled/triton.v1 failed: ")
        assert "no_such_tensor" in calls.reason
        with pytest.raises(opmux.Failed, match="no_such_tensor"):
            with opmux.scope(strict=True, runtime=world):
                world.op("scaled")(X)
        failed = {s.implementation: s.failed for s in world.stats()}
        assert failed["scaled/triton.v1"] == 2

    def test_configurations_are_chosen_by_triton(self, world):
        ran = add(world, without_block(tuned))
        measured.clear()
        tuned.cache.clear()
        for _ in range(2):
            with opmux.expect("scaled/triton.v1", runtime=world):
                y = world.op("scaled")(X)
            assert torch.equal(y, 2 * X)
        assert ran == ["cpu", "cpu"] and len(measured) == 3
        assert tuned.best_config is CONFIGS[2]

    def test_a_kernel_without_a_grid_is_refused(self, world):
        for kernel in (scaling, tuned):
            with pytest.raises(opmux.InvalidArgument, match=r"without a grid.*kernel\[grid\]"):
                opmux.implementation("scaled", "bare.v1", vendor="bare", runtime=world)(kernel)

    def test_policies_choose_between_kernels(self, world):
        first = add(world, with_block(scaling))
        second = add(world, without_block(tuned), "triton.v2")
        with opmux.scope(prefer=["scaled/triton.v2"], runtime=world):
            with opmux.expect("scaled/triton.v2", runtime=world):
                world.op("scaled")(X)
        assert first == [] and second == ["cpu"]


class TestTritonOnADevice:
    def test_a_kernel_for_a_device_runs_there_and_falls_back(self, runtime, driver, numbers):
        broken_now = []

        @opmux.implementation("protected.scale", "triton.v1", vendor="triton", priority=900,
                              device="npu", arch=("9.0", ""), runtime=runtime)  # fmt: skip
        def launch(x, by, *, out):
            kernel = broken if broken_now else scaling
            kernel[grid](x, out, by, n=x.numel(), BLOCK=128)

        scale, x = runtime.op("protected.scale"), numbers(1)
        with opmux.expect("protected.scale/triton.v1", runtime=runtime):
            y = scale(x)
        assert y.device == x.device and torch.equal(y.cpu(), 2 * x.cpu()) and driver.ran(1) == []
        with opmux.expect("protected.scale/protected.old", runtime=runtime):
            scale(numbers(0))
        broken_now.append(True)
        with opmux.expect("protected.scale/protected.new", runtime=runtime) as calls:
            y = scale(x)
        assert calls.fell_back and torch.equal(y.cpu(), 2 * x.cpu()) and driver.ran(1) == ["new"]
