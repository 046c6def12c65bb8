"""Single operators for bench_vllm: vLLM's eager code and opmux on the same data."""
import functools
import itertools

import torch
import torch.nn.functional as F
from vllm.model_executor.layers import utils

import opmux
import opmux.torch  # noqa: F401  # so that calls take the same path as in the vLLM plugin
import opmux.vllm

PLAIN = utils.dispatch_cpu_unquantized_gemm
opmux.vllm.register()
HIDDEN, INNER, HEADS, KV_HEADS, SIZE, BLOCK, CONTEXT = 2048, 8192, 32, 8, 64, 128, 1024
ops = opmux.ops


def numbers(*shape):
    return torch.randn(*shape).bfloat16()


def norms(rows):
    from vllm import ir

    x, residual, weight = numbers(rows, HIDDEN), numbers(rows, HIDDEN), numbers(HIDDEN)
    native = ir.ops.rms_norm.impls["native"].impl_fn
    fused = ir.ops.fused_add_rms_norm.impls["native"].impl_fn
    yield "rms_norm", lambda: native(x, weight, 1e-6), lambda: ops.rms_norm(x, weight, 1e-6, True)
    yield ("fused_add_rms_norm", lambda: fused(x, residual, weight, 1e-6),
           lambda: ops.fused_add_rms_norm(x, residual, weight, 1e-6, True))


def activations(rows):
    x = numbers(rows, 2 * INNER)
    yield ("silu_and_mul", lambda: F.silu(x[:, :INNER]) * x[:, INNER:], lambda: ops.silu_and_mul(x))
    yield ("gelu_and_mul", lambda: F.gelu(x[:, :INNER], approximate="tanh") * x[:, INNER:],
           lambda: ops.gelu_and_mul(x, "tanh"))


def rotary(rows):
    from vllm import _custom_ops

    qkv = numbers(rows, (HEADS + 2 * KV_HEADS) * SIZE)
    q, k = qkv[:, : HEADS * SIZE], qkv[:, HEADS * SIZE : (HEADS + KV_HEADS) * SIZE]
    heads, kv_heads = q.view(rows, HEADS, SIZE), k.view(rows, KV_HEADS, SIZE)
    # Rotations preserve magnitude, so repeated in-place calls neither overflow nor vanish.
    angles = torch.rand(4096, SIZE // 2)
    table = torch.cat([angles.cos(), angles.sin()], dim=1).bfloat16()
    positions = torch.arange(rows) + 100
    yield ("rotary_embedding",
           lambda: _custom_ops.rotary_embedding(positions, q, k, SIZE, table, True),
           lambda: ops.rotary_embedding(heads, kv_heads, positions, table, "neox"))


def layers(dispatch, weights):
    """Layers made from weights by `dispatch`: vLLM's function or opmux's replacement."""
    made = []
    for weight in weights:
        layer = torch.nn.Module()
        layer.weight, layer.bias = torch.nn.Parameter(weight, False), None
        dispatch(layer, False)
        made.append(layer)
    return itertools.cycle(made)


def linears(rows):
    """Cycles through several weights, so that they are read from memory as in a model."""
    for name, outputs, inputs in (("qkv", 3072, HIDDEN), ("o", HIDDEN, HIDDEN),
                                  ("gate_up", 2 * INNER, HIDDEN), ("down", HIDDEN, INNER)):
        first = numbers(outputs, inputs)
        weights = [first.clone() for _ in range(max(2, int(4e8 / first.nbytes)))]
        theirs, own = layers(PLAIN, weights), layers(utils.dispatch_cpu_unquantized_gemm, weights)
        x = numbers(rows, inputs)

        def multiply(cycle, x=x):
            layer = next(cycle)
            return layer.cpu_linear(x, layer.weight, None)

        yield (f"linear {name}", functools.partial(multiply, theirs),
               functools.partial(multiply, own))


def attention(rows):
    """One query per sequence, with one cache in vLLM's layout and one in opmux's."""
    from vllm import _custom_ops
    from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

    per_row = CONTEXT // BLOCK
    blocks, isa = rows * per_row, _get_attn_isa(torch.bfloat16, BLOCK, SIZE)
    caches = [torch.zeros(blocks, KV_HEADS, 2 * BLOCK, SIZE, dtype=torch.bfloat16)
              for _ in range(2)]
    theirs = caches[0].chunk(2, dim=2)
    own = [half.transpose(1, 2) for half in caches[1].chunk(2, dim=2)]
    keys, values = numbers(rows * CONTEXT, KV_HEADS, SIZE), numbers(rows * CONTEXT, KV_HEADS, SIZE)
    slots = torch.arange(rows * CONTEXT)
    table = torch.arange(blocks, dtype=torch.int32).view(rows, per_row)
    _custom_ops.cpu_attn_reshape_and_cache(keys, values, *theirs, slots, isa)
    ops.reshape_and_cache(*own, keys, values, slots)
    new_keys, new_values, new_slots = keys[:rows], values[:rows], slots[CONTEXT - 1 :: CONTEXT]
    yield ("reshape_and_cache",
           lambda: _custom_ops.cpu_attn_reshape_and_cache(new_keys, new_values, *theirs, new_slots, isa),
           lambda: ops.reshape_and_cache(*own, new_keys, new_values, new_slots))
    q, y = numbers(rows, HEADS, SIZE), numbers(rows, HEADS, SIZE)
    starts = torch.arange(rows + 1, dtype=torch.int32)
    lengths = torch.full((rows,), CONTEXT, dtype=torch.int32)
    plan = _custom_ops.cpu_attn_get_scheduler_metadata(
        num_reqs=rows, num_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=SIZE, seq_lens=lengths,
        dtype=torch.bfloat16, query_start_loc=starts, causal=True, sliding_window_size=-1, isa=isa,
        enable_kv_split=True, dynamic_causal=None, kv_cache_dtype="auto")
    yield (f"paged_attention of {CONTEXT}",
           lambda: _custom_ops.cpu_attention_with_kv_cache(
               query=q, key_cache=theirs[0], value_cache=theirs[1], output=y,
               query_start_loc=starts, seq_lens=lengths, scale=0.125, causal=True,
               alibi_slopes=None, sliding_window=-1, block_table=table, softcap=0,
               scheduler_metadata=plan, s_aux=None),
           lambda: ops.paged_attention(q, *own, table, lengths, starts, True, 0.125, out=y))


def experts(rows):
    """Eight experts of 1,024 by 2,048, two per row; vLLM gets packed weights, opmux plain ones."""
    from vllm import _custom_ops
    from vllm.model_executor.layers.fused_moe.router import cpu_router

    logits = torch.randn(rows, 8)
    weights, ids = torch.empty(rows, 2), torch.empty(rows, 2, dtype=torch.int32)
    yield ("topk_softmax", lambda: cpu_router._softmax_topk(logits, 2, True),
           lambda: ops.topk_softmax(logits, True, out=(weights, ids)))
    ops.topk_softmax(logits, True, out=(weights, ids))
    x, y = numbers(rows, HIDDEN), numbers(rows, HIDDEN)
    w1, w2 = numbers(8, 2 * 1024, HIDDEN) / 45, numbers(8, HIDDEN, 1024) / 32
    isa = "amx" if torch.cpu._is_amx_tile_supported() else "vec"
    packed = [_custom_ops.cpu_prepack_moe_weight(w, isa) for w in (w1, w2)]
    yield ("fused_moe",
           lambda: _custom_ops.cpu_fused_moe(y, x, *packed, None, None, weights, ids, "silu", isa),
           lambda: ops.fused_moe(x, w1, w2, weights, ids, "silu"))


def subjects():
    """(name, vLLM call, opmux call, lowest accepted ratio) of each operator for 1, 8 and 32 rows."""
    torch.cpu._init_amx()  # as a worker does, because vLLM's kernels assume the permission
    for rows in (1, 8, 32):
        for group in (norms, activations, rotary, linears, attention, experts):
            for name, plain, ours in group(rows):
                least = 3 if group in (norms, activations) else 1 / 1.05
                yield f"{name}, {rows} row{'s' * (rows > 1)}", plain, ours, least
