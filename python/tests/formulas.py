"""The standard operators in double precision with torch, as expected values for tests."""

from __future__ import annotations

import math

import torch


def rms_norm(x, weight=None, eps=1e-6):
    x = x.double()
    y = x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return y if weight is None else y * weight.double()


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    weight, bias = (None if t is None else t.double() for t in (weight, bias))
    return torch.nn.functional.layer_norm(x.double(), x.shape[-1:], weight, bias, eps)


def silu_and_mul(x):
    a, b = x.double().chunk(2, -1)
    return torch.nn.functional.silu(a) * b


def gelu_and_mul(x, approximate="none"):
    a, b = x.double().chunk(2, -1)
    return torch.nn.functional.gelu(a, approximate=approximate) * b


def rotary(x, positions, cos_sin, style="neox"):
    """Rotates a tensor [..., heads, D]; returns a new one."""
    size = cos_sin.shape[1]
    cos, sin = cos_sin.double()[positions.long()].unsqueeze(-2).chunk(2, -1)
    y = x.double().clone()
    if style == "neox":
        first, second = y[..., : size // 2].clone(), y[..., size // 2 : size].clone()
        y[..., : size // 2] = first * cos - second * sin
        y[..., size // 2 : size] = second * cos + first * sin
    else:
        first, second = y[..., 0:size:2].clone(), y[..., 1:size:2].clone()
        y[..., 0:size:2] = first * cos - second * sin
        y[..., 1:size:2] = second * cos + first * sin
    return y


def linear(x, weight, bias=None):
    y = x.double() @ weight.double().T
    return y if bias is None else y + bias.double()


def seen(queries, keys, causal, window):
    """A mask [queries, keys] of the keys that each query attends to. The last query is aligned with
    the last key."""
    place = torch.arange(queries)[:, None] + keys - queries
    key = torch.arange(keys)[None, :]
    mask = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        mask &= key <= place
    if window > 0:
        mask &= (place - key).abs() < window
    return mask


def attention(q, k, v, mask=None, causal=False, scale=None, window=0, sink=None, softcap=0.0):
    """q [B, S, HQ, D], k and v [B, T, HKV, D]."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    logits = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if softcap > 0:
        logits = softcap * torch.tanh(logits / softcap)
    if mask is not None and mask.dtype != torch.bool:
        logits = logits + mask.double()
    visible = seen(q.shape[2], k.shape[2], causal, window).expand(logits.shape)
    if mask is not None and mask.dtype == torch.bool:
        visible = visible & mask
    logits = logits.masked_fill(~visible, -math.inf)
    if sink is not None:
        column = sink.double().view(1, -1, 1, 1).expand(*logits.shape[:-1], 1)
        weights = torch.cat([logits, column], -1).softmax(-1)[..., :-1]
    else:
        weights = logits.softmax(-1)
    blind = (logits == -math.inf).all(-1, keepdim=True)
    return (weights.masked_fill(blind, 0) @ v).transpose(1, 2)


def paged_attention(q, k_cache, v_cache, block_table, seq_lens, query_start, **options):
    options.setdefault("causal", True)
    places = k_cache.shape[1]
    parts = []
    for b, length in enumerate(seq_lens.tolist()):
        begin, end = query_start[b].item(), query_start[b + 1].item()
        at = [(block_table[b, j // places].item(), j % places) for j in range(length)]
        blocks, offsets = [i for i, _ in at], [j for _, j in at]
        keys, values = k_cache[blocks, offsets], v_cache[blocks, offsets]
        parts.append(attention(q[None, begin:end], keys[None], values[None], **options)[0])
    return torch.cat(parts)


def fused_moe(x, w1, w2, weights, ids, activation="silu"):
    act = {
        "silu": torch.nn.functional.silu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda v: torch.nn.functional.gelu(v, approximate="tanh"),
    }[activation]
    x, w1, w2, weights = (t.double() for t in (x, w1, w2, weights))
    y = torch.zeros_like(x)
    for token in range(x.shape[0]):
        for choice in range(ids.shape[1]):
            expert = ids[token, choice].item()
            if expert < 0:
                continue
            gate, up = (w1[expert] @ x[token]).chunk(2)
            y[token] += weights[token, choice] * (w2[expert] @ (act(gate) * up))
    return y


def linear_w8a8(x, weight, weight_scale, x_scale=None, bias=None):
    if x.dtype == torch.int8:
        q = x.double()
    else:
        if x_scale is None:
            x_scale = x.float().abs().amax(-1) / 127
        q = torch.round(x.float() / x_scale.float().unsqueeze(-1)).clamp(-128, 127).double()
    y = q @ weight.double().T * x_scale.double().unsqueeze(-1) * weight_scale.double()
    return y if bias is None else y + bias.double()


def linear_w4a16(x, weight, scale, zero_point=None, bias=None):
    numbers = torch.stack([weight & 15, weight >> 4], -1).flatten(1).double()
    size = numbers.shape[1] // scale.shape[1]
    zero = 8.0 if zero_point is None else zero_point.double().repeat_interleave(size, 1)
    return linear(x, (numbers - zero) * scale.double().repeat_interleave(size, 1), bias)


def _philox(seed, offset):
    """64 random bits from Philox4x32-10."""
    word = 0xFFFFFFFF
    c = [offset & word, offset >> 32, 0, 0]
    k = [seed & word, seed >> 32]
    for _ in range(10):
        high0, low0 = divmod(c[0] * 0xD2511F53, 1 << 32)
        high1, low1 = divmod(c[2] * 0xCD9E8D57, 1 << 32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c[0] | c[1] << 32


_COEFFICIENTS = [round(2**31 * math.log(2) ** i / math.factorial(i)) for i in range(10)]


def _weight(logit, largest, temperature):
    """The integer weight of one logit, computed in the steps of docs/operators.md."""
    if logit == largest:
        return 1 << 40
    f32 = torch.float32
    ratio = torch.tensor(1.44269504, dtype=f32) / torch.tensor(temperature, dtype=f32)
    product = (torch.tensor(largest, dtype=f32) - torch.tensor(logit, dtype=f32)) * ratio
    product = product * torch.tensor(2.0**24, dtype=f32)
    if not product.item() < 40 * 2**24:
        return 0
    u = int(product.item())
    fraction, p = u & (2**24 - 1), _COEFFICIENTS[9]
    for i in range(8, -1, -1):
        p = _COEFFICIENTS[i] - (p * fraction >> 24)
    return (p << 9) >> (u >> 24)


def sample_row(logits, temperature=1.0, top_k=0, top_p=1.0, seed=0, offset=0):
    values = logits.float().tolist()
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    if temperature == 0:
        return order[0]
    weights = [_weight(v, values[order[0]], temperature) for v in values]
    if top_k > 0:
        for i in order[top_k:]:
            weights[i] = 0
    total, before = sum(weights), 0
    for i in order:
        kept = before < top_p * total or i == order[0]
        before += weights[i]
        if not kept:
            weights[i] = 0
    drawn = _philox(seed, offset) * sum(weights) >> 64
    running = 0
    for i, weight in enumerate(weights):
        running += weight
        if running > drawn:
            return i
    return -1
