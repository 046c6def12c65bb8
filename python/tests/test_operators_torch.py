"""Compares the 18 standard operators with torch in double precision, and checks which
implementation ran."""

import fnmatch
import math
import pathlib

import pytest

torch = pytest.importorskip("torch")

import formulas  # noqa: E402

import opmux  # noqa: E402

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
#: Relative and absolute tolerance of a result that is rounded once to the dtype.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 8e-3, torch.float16: 1.5e-3}
HOW = ["chosen", "reference"]
ROWS = [(1, 8), (3, 7), (5, 64), (2, 3, 33), (17,), (0, 16), (4, 1)]
_IMPLEMENTATIONS = {info.name: info.implementations for info in opmux.list_operators()}


@pytest.fixture(autouse=True)
def _same_numbers():
    torch.manual_seed(7)


def _processor_has(feature):
    return feature in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()


def onednn_first(dtype):
    """oneDNN before the reference, if it computes this dtype on this processor."""
    needed = {torch.bfloat16: "avx512bw", torch.float16: "avx512_fp16"}
    if dtype in needed and not _processor_has(needed[dtype]):
        return ("reference.*",)
    return ("onednn.*", "reference.*")


def best_of(op, globs):
    """The first of the globs for which this build and machine have an implementation."""
    here = [one.id for one in _IMPLEMENTATIONS[op] if one.available]
    for glob in globs:
        if fnmatch.filter(here, f"{op}/{glob}"):
            return f"{op}/{glob}"
    raise AssertionError(f"{op} has none of {globs}")


def call(how, op, *args, by=("simd.*", "reference.*"), nothing=False, declined=False, **kwargs):
    """Calls the operator by default choice or by its reference, and asserts which implementation
    ran."""
    function = getattr(opmux.ops, op)
    if nothing:  # no element to write: the call succeeds without running a kernel
        with opmux.report() as calls:
            result = function(*args, **kwargs)
        assert calls.implementations() == [""]
        return result
    if how == "reference":
        with opmux.expect(f"{op}/reference.scalar"), opmux.require("reference"):
            return function(*args, **kwargs)
    with opmux.expect(best_of(op, by)) as calls:
        result = function(*args, **kwargs)
    assert len(calls) == 1 and (declined or not calls.fell_back)
    return result


def close(actual, expected, dtype=None, times=1.0):
    limit = TOLERANCE[dtype or actual.dtype] * times
    torch.testing.assert_close(actual.double(), expected.double(), rtol=limit, atol=limit)


def rand(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
class TestEveryDtype:
    @pytest.mark.parametrize("shape", ROWS, ids=str)
    def test_rms_norm(self, how, dtype, shape):
        x, w = rand(*shape, dtype=dtype), rand(shape[-1], dtype=dtype)
        y = call(how, "rms_norm", x, w, eps=1e-5, nothing=x.numel() == 0)
        close(y, formulas.rms_norm(x, w, 1e-5))

    @pytest.mark.parametrize("shape", [(1, 8), (3, 7), (2, 3, 33)], ids=str)
    def test_fused_add_rms_norm(self, how, dtype, shape):
        x, residual, w = rand(*shape, dtype=dtype), rand(*shape, dtype=dtype), rand(shape[-1])
        total = (x.double() + residual.double()).to(dtype)
        assert call(how, "fused_add_rms_norm", x, residual, w) is None
        close(residual, total)
        close(x, formulas.rms_norm(total, w))

    @pytest.mark.parametrize("shape", [(1, 8), (3, 7), (2, 3, 33)], ids=str)
    @pytest.mark.parametrize("affine", [True, False])
    def test_layer_norm(self, how, dtype, shape, affine):
        x = rand(*shape, dtype=dtype)
        w, b = (rand(shape[-1], dtype=dtype) if affine else None for _ in range(2))
        close(call(how, "layer_norm", x, w, b), formulas.layer_norm(x, w, b))

    @pytest.mark.parametrize("shape", [(1, 8), (3, 14), (2, 3, 66), (0, 4)], ids=str)
    def test_silu_and_mul(self, how, dtype, shape):
        x = rand(*shape, dtype=dtype)
        close(call(how, "silu_and_mul", x, out=halves_of(x), nothing=x.numel() == 0),
              formulas.silu_and_mul(x))  # fmt: skip

    @pytest.mark.parametrize("approximate", ["none", "tanh"])
    @pytest.mark.parametrize("shape", [(1, 8), (3, 14), (2, 3, 66)], ids=str)
    def test_gelu_and_mul(self, how, dtype, shape, approximate):
        x = rand(*shape, dtype=dtype)
        close(
            call(how, "gelu_and_mul", x, approximate, out=halves_of(x)),
            formulas.gelu_and_mul(x, approximate),
        )

    @pytest.mark.parametrize("scale", [1.0, -0.5])
    @pytest.mark.parametrize("shape", [(1, 8), (3, 7), (2, 3, 33)], ids=str)
    def test_softmax(self, how, dtype, shape, scale):
        x = rand(*shape, dtype=dtype)
        close(call(how, "softmax", x, scale), (x.double() * scale).softmax(-1))

    @pytest.mark.parametrize("style", ["neox", "gptj"])
    @pytest.mark.parametrize("size", [8, 4])
    @pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
    def test_rotary_embedding(self, how, dtype, style, size, index):
        q, k = rand(5, 4, 8, dtype=dtype), rand(5, 2, 8, dtype=dtype)
        positions, table = torch.randint(0, 11, (5,)).to(index), rand(11, size)
        wanted = [formulas.rotary(t, positions, table, style) for t in (q, k)]
        assert call(how, "rotary_embedding", q, k, positions, table, style) is None
        close(q, wanted[0])
        close(k, wanted[1])

    @pytest.mark.parametrize("m,k,n", [(1, 8, 5), (3, 7, 9), (8, 64, 33), (2, 0, 3)])
    def test_matmul(self, how, dtype, m, k, n):
        a, b = rand(m, k, dtype=dtype), rand(k, n, dtype=dtype)
        with opmux.report() as calls, opmux.require(*(["reference"] if how != "chosen" else [])):
            y = opmux.ops.matmul(a, b)
        assert calls.implementation == opmux.explain("matmul", a, b).chosen or how != "chosen"
        assert fnmatch.fnmatchcase(calls.implementation, "matmul/reference.*") == (
            how == "reference" or (k == 0 and "reference" in opmux.explain("matmul", a, b).chosen)
        )
        close(y, a.double() @ b.double(), times=2)

    @pytest.mark.parametrize("rows", [1, 3, 9])
    @pytest.mark.parametrize("bias", [True, False])
    def test_linear(self, how, dtype, rows, bias):
        x, w = rand(rows, 24, dtype=dtype), rand(17, 24, dtype=dtype)
        b = rand(17, dtype=dtype) if bias else None
        first, *others = onednn_first(dtype)
        by = ("simd.*",) if rows <= 4 else (first, "openblas.*", *others)
        if first == "reference.*" and rows > 4:
            by = ("openblas.*", "reference.*")
        # oneDNN computes float16 without bias only.
        declined = first == "onednn.*" and dtype == torch.float16 and bias and rows > 4
        y = call(how, "linear", x, w, b, by=by[1:] if declined else by, declined=declined)
        close(y, formulas.linear(x, w, b), times=2)

    @pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
    def test_embedding(self, how, dtype, index):
        table, ids = rand(10, 6, dtype=dtype), torch.randint(0, 10, (2, 3)).to(index)
        y = call(how, "embedding", table, ids)
        assert torch.equal(y, table[ids.long()])

    def test_reshape_and_cache(self, how, dtype):
        k_cache, v_cache = (rand(3, 4, 2, size, dtype=dtype) for size in (8, 6))
        k, v = rand(5, 2, 8, dtype=dtype), rand(5, 2, 6, dtype=dtype)
        slots = torch.tensor([11, 0, -1, 5, 6])
        wanted_k, wanted_v = k_cache.clone(), v_cache.clone()
        for token, slot in enumerate(slots.tolist()):
            if slot >= 0:
                wanted_k[slot // 4, slot % 4], wanted_v[slot // 4, slot % 4] = k[token], v[token]
        call(how, "reshape_and_cache", k_cache, v_cache, k, v, slots)
        assert torch.equal(k_cache, wanted_k) and torch.equal(v_cache, wanted_v)

    @pytest.mark.parametrize("heads,kv_heads", [(4, 4), (4, 2), (6, 1)])
    @pytest.mark.parametrize("s,t", [(5, 5), (1, 7), (3, 9)])
    def test_attention(self, how, dtype, heads, kv_heads, s, t):
        q = rand(2, s, heads, 16, dtype=dtype)
        k, v = (rand(2, t, kv_heads, size, dtype=dtype) for size in (16, 8))
        y = call(how, "attention", q, k, v, causal=True)
        close(y, formulas.attention(q, k, v, causal=True), times=2)

    @pytest.mark.parametrize("window", [0, 3])
    def test_paged_attention(self, how, dtype, window):
        args = paged(dtype)
        y = call(how, "paged_attention", *args, window=window)
        close(y, formulas.paged_attention(*args, window=window), times=2)

    @pytest.mark.parametrize("renormalize", [False, True])
    @pytest.mark.parametrize("k", [1, 3, 8])
    def test_topk_softmax(self, how, dtype, renormalize, k):
        logits = rand(5, 8, dtype=dtype)
        out = torch.empty(5, k), torch.empty(5, k, dtype=torch.int32)
        assert call(how, "topk_softmax", logits, renormalize, out=out) == out
        order = logits.float().argsort(dim=-1, descending=True, stable=True)[:, :k]
        wanted = logits.double().softmax(-1).gather(1, order)
        if renormalize:
            wanted = wanted / wanted.sum(-1, keepdim=True)
        assert torch.equal(out[1].long(), order)
        close(out[0], wanted)

    @pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh"])
    def test_fused_moe(self, how, dtype, activation):
        x, w1, w2 = rand(6, 16), rand(4, 24, 16) / 4, rand(4, 16, 12) / 4
        x, w1, w2 = (t.to(dtype) for t in (x, w1, w2))
        weights, ids = torch.rand(6, 2).to(dtype), torch.randint(-1, 4, (6, 2), dtype=torch.int32)
        y = call(how, "fused_moe", x, w1, w2, weights, ids, activation, by=onednn_first(dtype))
        # Implementations may round between the products.
        close(y, formulas.fused_moe(x, w1, w2, weights, ids, activation), times=8)

    @pytest.mark.parametrize("given", ["scale", "no scale"])
    def test_linear_w8a8_of_floats(self, how, dtype, given):
        x, weight = rand(5, 32, dtype=dtype), torch.randint(-128, 128, (7, 32), dtype=torch.int8)
        scale, bias = torch.rand(7) / 100, rand(7)
        x_scale = torch.rand(5) / 20 + 0.01 if given == "scale" else None
        y = call(how, "linear_w8a8", x, weight, scale, x_scale, bias,
                 by=("onednn.*", "reference.*"))  # fmt: skip
        close(y, formulas.linear_w8a8(x, weight, scale, x_scale, bias), times=2)

    @pytest.mark.parametrize("groups", [1, 4])
    @pytest.mark.parametrize("zero", ["absent", "u8", "float"])
    def test_linear_w4a16(self, how, dtype, groups, zero):
        x = rand(3, 32, dtype=dtype)
        weight = torch.randint(0, 256, (5, 16), dtype=torch.uint8)
        scale, bias = torch.rand(5, groups) / 20, rand(5, dtype=dtype)
        zero_point = torch.randint(0, 16, (5, groups), dtype=torch.uint8)
        zero_point = {"absent": None, "u8": zero_point, "float": zero_point.float()}[zero]
        y = call(how, "linear_w4a16", x, weight, scale, zero_point, bias)
        close(y, formulas.linear_w4a16(x, weight, scale, zero_point, bias), times=2)

    @pytest.mark.parametrize("top_k,top_p", [(0, 1.0), (3, 1.0), (0, 0.6), (5, 0.8)])
    def test_sample_draws_what_its_integers_say(self, how, dtype, top_k, top_p):
        rows = 12
        logits = rand(rows, 19, dtype=dtype)
        temperature = torch.tensor([0.0, 0.5, 1.0, 1.7] * 3)
        seeds, offsets = torch.arange(rows) * (2**40 + 7), torch.arange(rows)
        out = torch.empty(rows, dtype=torch.int64)
        call(how, "sample", logits, temperature, torch.full((rows,), top_k),
             torch.full((rows,), top_p), seeds, offsets, out=out)  # fmt: skip
        wanted = [
            formulas.sample_row(logits[i], temperature[i].item(), top_k, top_p,
                                seeds[i].item(), offsets[i].item())
            for i in range(rows)
        ]  # fmt: skip
        assert out.tolist() == wanted


def halves_of(x):
    return torch.empty(*x.shape[:-1], x.shape[-1] // 2, dtype=x.dtype)


def paged(dtype):
    """A decoding, a prefilling and an empty sequence over a cache with unused blocks."""
    k_cache, v_cache = (rand(6, 4, 2, size, dtype=dtype) for size in (16, 8))
    tables = torch.tensor([[5, 1, 0], [2, 3, 4], [0, 0, 0]], dtype=torch.int32)
    lengths = torch.tensor([9, 6, 0], dtype=torch.int32)
    starts = torch.tensor([0, 1, 5, 5], dtype=torch.int32)
    return rand(5, 4, 16, dtype=dtype), k_cache, v_cache, tables, lengths, starts


@pytest.mark.parametrize("how", HOW)
class TestAttentionOptions:
    @staticmethod
    def tensors():
        return rand(2, 4, 4, 16), rand(2, 6, 2, 16), rand(2, 6, 2, 16)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"scale": 0.3},
            {"scale": 0.0},
            {"window": 1},
            {"window": 2, "causal": True},
            {"softcap": 1.5},
            {"softcap": 5.0, "causal": True, "window": 3},
        ],
        ids=str,
    )
    def test_scalars(self, how, options):
        q, k, v = self.tensors()
        y = call(how, "attention", q, k, v, **options)
        close(y, formulas.attention(q, k, v, **options), times=2)

    @pytest.mark.parametrize("shape", [(2, 4, 4, 6), (2, 1, 1, 6), (4, 6), (1, 1, 4, 1)], ids=str)
    @pytest.mark.parametrize("kind", ["bool", "float"])
    def test_masks(self, how, shape, kind):
        q, k, v = self.tensors()
        mask = torch.rand(shape) > 0.4
        if kind == "float":
            mask = torch.where(mask, torch.randn(shape), -math.inf)
        y = call(how, "attention", q, k, v, mask)
        close(y, formulas.attention(q, k, v, mask), times=2)

    @pytest.mark.parametrize("causal", [False, True])
    def test_sinks(self, how, causal):
        q, k, v = self.tensors()
        sink = rand(4)
        y = call(how, "attention", q, k, v, sink=sink, causal=causal)
        close(y, formulas.attention(q, k, v, sink=sink, causal=causal), times=2)

    def test_queries_that_see_nothing_are_zero(self, how):
        q, k, v = rand(1, 5, 2, 8), rand(1, 2, 2, 8), rand(1, 2, 2, 8)
        y = call(how, "attention", q, k, v, causal=True)
        assert torch.equal(y[:, :3], torch.zeros(1, 3, 2, 8))
        close(y, formulas.attention(q, k, v, causal=True), times=2)

    def test_heads_outside_of_positions_in_memory(self, how):
        q, k, v = (rand(2, h, n, 16).transpose(1, 2) for h, n in ((4, 4), (2, 6), (2, 6)))
        y = call(how, "attention", q, k, v, causal=True)
        close(y, formulas.attention(q, k, v, causal=True), times=2)

    @pytest.mark.parametrize("options", [{"sink": True}, {"softcap": 2.0}, {"causal": False}])
    def test_paged(self, how, options):
        if "sink" in options:
            options = {"sink": rand(4)}
        args = paged(torch.float32)
        y = call(how, "paged_attention", *args, **options)
        close(y, formulas.paged_attention(*args, **options), times=2)


@pytest.mark.parametrize("how", HOW)
class TestStrides:
    def test_rows_with_gaps(self, how):
        x, w = rand(6, 20)[::2, :9], rand(9)
        close(call(how, "rms_norm", x, w), formulas.rms_norm(x, w))

    def test_a_transposed_input_is_for_the_reference(self, how):
        x = rand(9, 6).T
        close(call(how, "rms_norm", x, by=("reference.*",)), formulas.rms_norm(x))

    def test_outputs_with_gaps_keep_what_lies_between(self, how):
        x, wide = rand(3, 8), torch.full((3, 12), 5.0)
        assert call(how, "softmax", x, out=wide[:, :8]).data_ptr() == wide.data_ptr()
        close(wide[:, :8], x.double().softmax(-1))
        assert torch.equal(wide[:, 8:], torch.full((3, 4), 5.0))

    def test_a_transposed_matrix_is_a_view(self, how):
        a, b = rand(16, 24), rand(9, 24).T
        by = ("onednn.*", "openblas.*", "reference.*")
        close(call(how, "matmul", a, b, by=by), a.double() @ b.double(), times=2)

    def test_batches_of_matrices(self, how):
        a, b = rand(3, 8, 16), rand(16, 9).expand(3, 16, 9)
        y = call(how, "matmul", a, b, by=("openblas.*", "reference.*"), declined=True)
        close(y, a.double() @ b.double(), times=2)

    def test_one_scale_for_all_rows_has_stride_0(self, how):
        x = torch.randint(-128, 128, (4, 16), dtype=torch.int8)
        weight, scale = torch.randint(-128, 128, (5, 16), dtype=torch.int8), torch.rand(5)
        x_scale = torch.tensor(0.02).expand(4)
        by = ("onednn.*", "reference.*")
        out = torch.empty(4, 5)
        call(how, "linear_w8a8", x, weight, scale, x_scale, by=by, out=out)
        close(out, formulas.linear_w8a8(x, weight, scale, x_scale), times=2)


class TestMixedDtypes:
    @pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
    def test_weights_may_have_another_dtype(self, dtype):
        x, w = rand(4, 16, dtype=dtype), rand(16)
        close(call("chosen", "rms_norm", x, w), formulas.rms_norm(x, w))

    @pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
    def test_outputs_of_another_dtype_are_for_the_reference(self, dtype):
        x, out = rand(4, 16, dtype=dtype), torch.empty(4, 16)
        close(call("chosen", "rms_norm", x, by=("reference.*",), out=out), formulas.rms_norm(x))

    def test_round_before_weight_has_the_bits_of_llama(self):
        x, w = rand(64, 128, dtype=torch.bfloat16), rand(128, dtype=torch.bfloat16)
        norm = formulas.rms_norm(x).to(torch.bfloat16)
        y = call("chosen", "rms_norm", x, w, 1e-6, True)
        once = call("chosen", "rms_norm", x, w)
        agree = (y == norm * w).double().mean().item()
        assert agree > 0.99 and not torch.equal(y, once)


@pytest.mark.parametrize("how", HOW)
class TestData:
    """Invalid tensor contents: every implementation returns invalid_argument and writes nothing."""

    @pytest.mark.parametrize("bad", [-1, 10])
    def test_embedding_ids(self, how, bad):
        out = torch.full((2, 4), 3.0)
        with opmux.require(*(["reference"] if how == "reference" else [])):
            with pytest.raises(opmux.InvalidArgument, match=rf"{bad}.*10"):
                opmux.ops.embedding(rand(10, 4), torch.tensor([0, bad]), out=out)
        assert torch.equal(out, torch.full((2, 4), 3.0))

    def test_positions(self, how):
        q = torch.ones(2, 1, 4)
        with opmux.require(*(["reference"] if how == "reference" else [])):
            with pytest.raises(opmux.InvalidArgument, match="position 7"):
                opmux.ops.rotary_embedding(q, None, torch.tensor([0, 7]), rand(3, 4))
        assert torch.equal(q, torch.ones(2, 1, 4))

    def test_slots(self, how):
        cache = torch.zeros(2, 2, 1, 4)
        with opmux.require(*(["reference"] if how == "reference" else [])):
            with pytest.raises(opmux.InvalidArgument, match="4"):
                opmux.ops.reshape_and_cache(cache, cache.clone(), rand(1, 1, 4), rand(1, 1, 4),
                                            torch.tensor([4]))  # fmt: skip
        assert not cache.any()

    def test_experts(self, how):
        args = rand(1, 4), rand(2, 4, 4), rand(2, 4, 2), torch.ones(1, 1), torch.tensor([[2]])
        with opmux.require(*(["reference"] if how == "reference" else [])):
            with pytest.raises(opmux.InvalidArgument, match="2"):
                opmux.ops.fused_moe(*args)

    @pytest.mark.parametrize("temperature", [-1.0, math.nan, math.inf])
    def test_temperatures(self, how, temperature):
        out = torch.empty(1, dtype=torch.int64)
        with opmux.require(*(["reference"] if how == "reference" else [])):
            with pytest.raises(opmux.InvalidArgument, match="temperature"):
                opmux.ops.sample(rand(1, 5), torch.tensor([temperature]), out=out)
