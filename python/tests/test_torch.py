"""opmux inside torch: torch.ops, compiled and exported code, fake tensors, autograd."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch_samples import given_outputs, samples

import opmux
import opmux.torch
from opmux.torch._register import _entries

SAMPLES = samples()
NAMES = sorted(SAMPLES)


def copies(args):
    return tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in args)


def made_outputs(name, args):
    out = given_outputs(name)
    return out if out is not None else opmux.ops.__getattr__(name)(*copies(args))


def test_every_standard_operator_has_arguments_here(runtime):
    assert sorted(info.name for info in runtime.list()) == NAMES


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_opcheck_passes(name):
    entry, args = _entries[name], SAMPLES[name]
    if entry.functional is not None:
        with opmux.expect(f"{name}/*"):
            torch.library.opcheck(entry.functional, copies(args))
    if entry.out is not None:
        out = made_outputs(name, args)
        given = dict(
            zip(entry.schema.out_names(), out if isinstance(out, tuple) else (out,), strict=True)
        )
        with opmux.expect(f"{name}/*"):
            torch.library.opcheck(entry.out, copies(args), given)


@pytest.mark.parametrize("name", NAMES)
def test_fake_tensors_have_the_shapes_of_real_ones(name):
    function, args = getattr(opmux.ops, name), SAMPLES[name]
    out = given_outputs(name)
    with opmux.expect(f"{name}/*"):
        real = function(*copies(args), **({} if out is None else {"out": out}))
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
        given = {} if out is None else {"out": tuple(mode.from_tensor(o) for o in out)}
        with opmux.report() as calls:
            shown = function(*fake, **given)
        assert len(calls) == 0
    if isinstance(real, torch.Tensor):
        assert (shown.shape, shown.dtype, shown.stride()) == (real.shape, real.dtype, real.stride())
    else:
        assert (shown is None) == (real is None)


def test_compiled_code_holds_the_operator_and_runs_the_same_implementation():
    def block(x, w):
        return opmux.ops.rms_norm(x * 2, w, eps=1e-5) + 1

    x, w = torch.randn(4, 16), torch.randn(16)
    with opmux.expect("rms_norm/simd.*"):
        expected = block(x, w)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    with opmux.expect("rms_norm/simd.*") as calls:
        torch.testing.assert_close(compiled(x, w), expected)
    assert len(calls) == 1
    with opmux.require("reference"), opmux.expect("rms_norm/reference.*"):
        torch.testing.assert_close(compiled(x, w), expected)


def test_compiled_code_updates_in_place_and_writes_to_out():
    def block(x, residual, w, y):
        opmux.ops.fused_add_rms_norm(x, residual, weight=w)
        opmux.ops.silu_and_mul(x, out=y)
        return x + residual

    args = torch.randn(4, 16), torch.randn(4, 16), torch.randn(16), torch.zeros(4, 8)
    eager, traced = copies(args), copies(args)
    expected = block(*eager)
    with opmux.expect("fused_add_rms_norm/simd.*", "silu_and_mul/simd.*"):
        result = torch.compile(block, fullgraph=True, backend="aot_eager")(*traced)
    torch.testing.assert_close(result, expected)
    for one, other in zip(eager, traced, strict=True):
        torch.testing.assert_close(one, other)


def test_sizes_stay_symbols_in_compiled_code():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    block = torch.compile(
        lambda x: opmux.ops.silu_and_mul(x).sum(-1), fullgraph=True, dynamic=True, backend=count
    )
    for rows, width in ((2, 16), (5, 32), (7, 48)):
        with opmux.expect("silu_and_mul/simd.*"):
            assert block(torch.randn(rows, width)).shape == (rows,)
    assert len(graphs) == 1


@pytest.mark.full
def test_inductor_runs_it():
    block = torch.compile(lambda x, w: opmux.ops.linear(x.relu(), w).relu(), fullgraph=True)
    x, w = torch.randn(3, 8), torch.randn(4, 8)
    with opmux.expect("linear/*"):
        torch.testing.assert_close(block(x, w), F.linear(x.relu(), w).relu())


def test_export_keeps_the_operator():
    class Block(torch.nn.Module):
        def forward(self, x):
            return opmux.ops.softmax(x, scale=2.0) + 1

    program = torch.export.export(Block(), (torch.randn(2, 8),), strict=False)
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert "opmux.softmax.default" in targets
    x = torch.randn(2, 8)
    with opmux.expect("softmax/simd.*"):
        torch.testing.assert_close(program.module()(x), torch.softmax(2 * x, -1) + 1)


def test_inference_mode():
    with torch.inference_mode(), opmux.expect("rms_norm/simd.*"):
        assert opmux.ops.rms_norm(torch.randn(2, 8)).is_inference()


def test_meta_tensors_tell_shapes():
    made = torch.ops.opmux.embedding(
        torch.empty(9, 4, device="meta"), torch.empty(2, 3, device="meta", dtype=torch.int64)
    )
    assert made.shape == (2, 3, 4)
    assert made.device.type == "meta"


def test_subclasses_are_seen_by_torch():
    seen = []

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs)

    x = torch.randn(2, 8)
    with opmux.expect("rms_norm/simd.*"):
        y = opmux.ops.rms_norm(x.as_subclass(Mine))
    assert type(y) is Mine
    assert torch.ops.opmux.rms_norm.default in seen


def test_operators_without_a_formula_refuse_tensors_that_require_grad():
    x = torch.randn(2, 8, requires_grad=True)
    for call in (opmux.ops.layer_norm, torch.ops.opmux.layer_norm):
        with pytest.raises(opmux.InvalidArgument, match=r"layer_norm: .*no_grad\(\)") as raised:
            call(x)
        assert raised.value.reason == "python.requires_grad"
    with pytest.raises(opmux.InvalidArgument, match="inference_mode"):
        opmux.ops.softmax(x, out=torch.empty(2, 8))
    with torch.no_grad(), opmux.expect("layer_norm/simd.*"):
        opmux.ops.layer_norm(x)


def gradients(function, *args):
    leaves = [a.clone().requires_grad_() for a in args]
    y = function(*leaves)
    y.backward(torch.linspace(-1, 1, y.numel()).view_as(y))
    return [y.detach(), *(leaf.grad for leaf in leaves)]


FORMULAS = {
    "rms_norm": ((2, 3, 8), (8,)),
    "silu_and_mul": ((2, 3, 8),),
    "linear": ((2, 3, 8), (4, 8), (4,)),
    "softmax": ((2, 3, 8),),
}
TORCHS = {
    "rms_norm": lambda x, w: F.rms_norm(x, (8,), w, 1e-6),
    "silu_and_mul": lambda x: F.silu(x[..., :4]) * x[..., 4:],
    "linear": F.linear,
    "softmax": lambda x: torch.softmax(x, -1),
}


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_formulas_agree_with_torchs_derivatives(name):
    torch.manual_seed(1)
    args = [torch.randn(shape) for shape in FORMULAS[name]]
    with opmux.expect(f"{name}/*"):
        ours = gradients(getattr(opmux.ops, name), *args)
    for one, other in zip(ours, gradients(TORCHS[name], *args), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_formulas_are_traced(name):
    torch.manual_seed(1)
    args = [torch.randn(shape) for shape in FORMULAS[name]]
    function = getattr(opmux.ops, name)
    compiled = torch.compile(lambda *a: function(*a), fullgraph=True, backend="aot_eager")
    with opmux.expect(f"{name}/*"):
        ours = gradients(compiled, *args)
    for one, other in zip(ours, gradients(TORCHS[name], *args), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_opcheck_passes_with_derivatives(name):
    torch.manual_seed(3)
    args = [torch.randn(shape).requires_grad_() for shape in FORMULAS[name]]
    with opmux.expect(f"{name}/*"):
        torch.library.opcheck(_entries[name].functional, args)


@pytest.mark.filterwarnings("ignore:Input #")
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_formulas_are_the_slope_of_the_operator(name):
    torch.manual_seed(2)
    args = [torch.randn(shape).requires_grad_() for shape in FORMULAS[name]]
    with opmux.expect(f"{name}/*"):
        torch.autograd.gradcheck(
            getattr(opmux.ops, name), args, eps=1e-2, atol=2e-2, rtol=2e-2, nondet_tol=1e-5
        )


def test_operators_that_a_program_defines_can_be_registered():
    operator = opmux.define(
        "torch_test_join(out Tensor y[..., HC], Tensor a[..., H], Tensor b[..., H], int times = 1, "
        "float? scale) where HC == 2 * H"
    )

    @opmux.implementation("torch_test_join", "mine.body", kind="reference")
    def join(a, b, times, scale):
        return torch.cat([a, b], -1) * times * (scale or 1)

    assert opmux.torch.register(operator) is torch.ops.opmux.torch_test_join
    block = torch.compile(
        lambda a, b: opmux.ops.torch_test_join(a, b, scale=0.5), fullgraph=True, backend="aot_eager"
    )
    with opmux.expect("torch_test_join/mine.body"):
        y = block(torch.ones(2, 3), torch.ones(2, 3))
    assert y.shape == (2, 6)
    assert (y == 0.5).all()
    join.withdraw()


def test_a_dispatchable_with_a_schema_is_traced_under_its_own_name():
    @opmux.dispatchable("torch_test_twice(out Tensor y[N], Tensor x[N])")
    def twice(x):
        return 2 * x

    opmux.torch.register("torch_test_twice")
    block = torch.compile(lambda x: twice(x) + 1, fullgraph=True, backend="aot_eager")
    with opmux.expect("torch_test_twice/own.body"):
        assert block(torch.ones(3)).tolist() == [3, 3, 3]


def test_wrong_shapes_are_refused_while_tracing():
    block = torch.compile(lambda x, w: opmux.ops.rms_norm(x, w), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match="H is 8 but 7 in 'weight'"):
        block(torch.randn(2, 8), torch.randn(7))
