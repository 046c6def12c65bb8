"""torch tensors that DLPack accepts but a call must refuse, with both readers."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import opmux  # noqa: E402


def refused(message, *args, reason, op="rms_norm", **kwargs):
    with pytest.raises(opmux.InvalidArgument, match=message) as raised:
        getattr(opmux.ops, op)(*args, **kwargs)
    assert raised.value.reason == reason


def test_the_reader_is_shown(reader):
    with opmux.expect("rms_norm/simd.*"):
        opmux.ops.rms_norm(torch.ones(2, 4))
    shown = {kind: path for kind, path, _ in opmux.readers()}
    assert shown["torch.Tensor"] == reader


def test_plain_tensors(reader):
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    with opmux.expect("rms_norm/simd.*"):
        assert opmux.ops.rms_norm(x, out=out) is out
    torch.testing.assert_close(out, torch.nn.functional.rms_norm(x, (8,), eps=1e-6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_views(reader, dtype):
    x = torch.randn(8, 20).to(dtype)[::2, 4:12]
    with opmux.expect("rms_norm/simd.*"):
        y = opmux.ops.rms_norm(x)
    wanted = torch.nn.functional.rms_norm(x.double(), (8,), eps=1e-6)
    torch.testing.assert_close(y.double(), wanted, rtol=8e-3, atol=8e-3)


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
def test_integers_and_bools(reader, index):
    with opmux.expect("embedding/simd.*"):
        y = opmux.ops.embedding(torch.arange(6.0).view(3, 2), torch.tensor([2, 0], dtype=index))
    assert y.tolist() == [[4, 5], [0, 1]]
    q = torch.ones(1, 2, 1, 4)
    with opmux.expect("attention/*"):
        y = opmux.ops.attention(q, q, q, torch.tensor([[True, False], [False, False]]))
    assert y[0, :, 0, 0].tolist() == [1, 0]


def test_empty_and_scalar_tensors(reader):
    assert opmux.ops.rms_norm(torch.ones(0, 8)).shape == (0, 8)
    with pytest.raises(opmux.InvalidArgument, match="'?x'?"):
        opmux.ops.rms_norm(torch.tensor(1.0))


class TestGrad:
    @pytest.mark.parametrize("which", ["parameter", "leaf", "result"])
    def test_is_refused_with_advice_where_there_is_no_derivative(self, reader, which):
        weight = torch.ones(8, requires_grad=True)
        if which == "parameter":
            weight = torch.nn.Parameter(weight.detach())
        elif which == "result":
            weight = weight * 2
        refused("grad", torch.ones(4, 8), weight, op="layer_norm", reason="python.requires_grad")

    def test_is_recorded_where_there_is_one(self, reader):
        weight = torch.nn.Parameter(torch.ones(8))
        with opmux.expect("rms_norm/simd.*"):
            y = opmux.ops.rms_norm(torch.ones(4, 8), weight)
        y.sum().backward()
        torch.testing.assert_close(weight.grad, torch.full((8,), 4.0))

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_is_fine_where_nobody_records(self, reader, mode):
        weight = torch.nn.Parameter(torch.full((8,), 2.0))
        with mode(), opmux.expect("rms_norm/simd.*"):
            y = opmux.ops.rms_norm(torch.ones(4, 8), weight)
        torch.testing.assert_close(y.clone(), torch.full((4, 8), 2.0))

    def test_parameters_that_do_not_require_it(self, reader):
        weight = torch.nn.Parameter(torch.ones(8), requires_grad=False)
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(torch.ones(4, 8), weight)

    def test_explain_answers_all_the_same(self, reader):
        weight = torch.nn.Parameter(torch.ones(8))
        assert opmux.explain("rms_norm", torch.ones(4, 8), weight).chosen.startswith("rms_norm/")

    def test_plans_are_refused(self, reader):
        weight = torch.nn.Parameter(torch.ones(8))
        with pytest.raises(opmux.InvalidArgument, match="'weight' requires grad"):
            opmux.bind("rms_norm", torch.ones(4, 8), weight)
        plan = opmux.bind("rms_norm", torch.ones(4, 8), weight.detach())
        with pytest.raises(opmux.OutsidePlan, match="require grad"):
            plan(torch.ones(4, 8), weight)
        assert plan.implementation.startswith("rms_norm/simd.")

    def test_constants_of_parameters(self, reader):
        weight = opmux.constant(torch.nn.Parameter(torch.ones(8)).detach())
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(torch.ones(4, 8), weight)


class TestLazyBits:
    def test_negated(self, reader):
        x = torch.randn(4, 8, dtype=torch.complex64).conj().imag
        assert x.is_neg()
        refused("'x' has its conjugate or negative bit", x, reason="python.lazy")

    def test_resolved(self, reader):
        x = torch.randn(4, 8, dtype=torch.complex64).conj().imag.resolve_neg()
        with opmux.expect("rms_norm/*"):
            opmux.ops.rms_norm(x)

    def test_conjugated(self, reader):
        x = torch.randn(4, 8, dtype=torch.complex64).conj()
        with pytest.raises(opmux.Error):
            opmux.ops.rms_norm(x, out=torch.empty(4, 8))


class TestWhatHasNoMemory:
    def test_meta(self, reader):
        with pytest.raises(opmux.InvalidArgument, match="'x'"):
            opmux.ops.rms_norm(torch.ones(4, 8, device="meta"))

    def test_sparse(self, reader):
        with pytest.raises(opmux.InvalidArgument, match="'x'"):
            opmux.ops.rms_norm(torch.ones(4, 8).to_sparse())

    def test_mkldnn(self, reader):
        if not torch.backends.mkldnn.is_available():
            pytest.skip("this torch has no mkldnn")
        with pytest.raises(opmux.InvalidArgument, match="'x'"):
            opmux.ops.rms_norm(torch.ones(4, 8).to_mkldnn())

    def test_fake(self, reader):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        with FakeTensorMode():
            y = opmux.ops.rms_norm(torch.empty(4, 8))
        assert isinstance(y, FakeTensor) and y.shape == (4, 8)


class Mine(torch.Tensor):
    pass


class TestSubclasses:
    def test_are_for_torch_which_explain_and_bind_do_not_ask(self, reader):
        x = torch.ones(4, 8).as_subclass(Mine)
        for attempt in (opmux.explain, opmux.bind):
            with pytest.raises(opmux.InvalidArgument, match="'x' is a Mine, which needs") as raised:
                attempt("rms_norm", x)
            assert raised.value.reason == "python.reroute"

    def test_torch_gets_the_whole_call(self, reader):
        script = (
            "import torch, opmux\n"
            "class Mine(torch.Tensor): pass\n"
            "x, calls = torch.ones(4, 8).as_subclass(Mine), []\n"
            "opmux.ops.rms_norm(torch.ones(4, 8))\n"
            "opmux._core.set_reroute_hook(lambda *call: calls.append(call) or 'rerouted')\n"
            "assert opmux.ops.rms_norm(x, eps=0.5) == 'rerouted'\n"
            "assert calls[0][0] == 'rms_norm' and calls[0][1][0] is x\n"
            "assert calls[0][2] == {'eps': 0.5}\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True)


class TestInference:
    def test_tensors_made_in_inference_mode_are_read(self, reader):
        with torch.inference_mode():
            x = torch.ones(4, 8)
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(x)

    def test_outputs_made_in_inference_mode_are_inference_tensors(self, reader):
        with torch.inference_mode(), opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(torch.ones(4, 8)).is_inference()
        with opmux.expect("rms_norm/simd.*"):
            assert not opmux.ops.rms_norm(torch.ones(4, 8)).is_inference()

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
    def test_they_are_written_to_in_inference_mode_only(self, reader, mode):
        with torch.inference_mode():
            out, state = torch.zeros(4, 8), torch.zeros(4, 8)
            with opmux.expect("rms_norm/simd.*"):
                opmux.ops.rms_norm(torch.ones(4, 8), out=out)
        reason = "python.not_writable"
        with mode():
            refused("'y' is an inference tensor", torch.ones(4, 8), out=out, reason=reason)
            refused("'x' is an inference tensor", state, torch.ones(4, 8), reason=reason,
                    op="fused_add_rms_norm")  # fmt: skip
            with opmux.expect("rms_norm/simd.*"):
                opmux.ops.rms_norm(torch.ones(4, 8), out=out.clone())
        assert not state.any()


class TestModes:
    def test_those_that_trace_see_calls_with_plain_tensors(self, reader):
        from torch.fx.experimental.proxy_tensor import make_fx

        x = torch.randn(4, 8)
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(x)
        traced = make_fx(lambda x: opmux.ops.rms_norm(x) + 1)(x)
        assert torch.ops.opmux.rms_norm.default in {node.target for node in traced.graph.nodes}
        other = torch.randn(4, 8)
        with opmux.expect("rms_norm/simd.*"):
            torch.testing.assert_close(traced(other), opmux.ops.rms_norm(other) + 1)

    def test_a_mode_may_make_the_call_itself(self, reader):
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(func)
                return func(*args, **(kwargs or {}))

        x, out = torch.randn(4, 8), torch.empty(4, 8)
        with opmux.expect("rms_norm/simd.*"):
            with Watch(), Watch():
                opmux.ops.rms_norm(x, out=out)
            torch.testing.assert_close(out, opmux.ops.rms_norm(x))
        assert seen.count(torch.ops.opmux.rms_norm.out) == 2
