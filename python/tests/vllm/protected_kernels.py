"""Python implementations for the protected device, as a plugin for OPMUX_PYTHON_PLUGINS.

The device's own plugin brings `silu_and_mul`. PROTECTED_KERNELS names the operators that this
module brings, all by default.
"""

import os

import torch

import opmux

OPTIONS = {"vendor": "acme", "priority": 300, "device": "npu", "dtypes": ["f32", "i32", "i64"]}


def normalize(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rms_norm(x, weight, eps, round_before_weight):
    return normalize(x, weight, eps)


def fused_add_rms_norm(x, residual, weight, eps, round_before_weight):
    residual += x
    x.copy_(normalize(residual, weight, eps))


def rotary_embedding(q, k, positions, cos_sin, style):
    assert style == "neox"
    cos, sin = cos_sin[positions].unsqueeze(-2).chunk(2, dim=-1)
    for x in (q, k):
        first, second = x.chunk(2, dim=-1)
        x.copy_(torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1))


def topk_softmax(logits, renormalize, *, out):
    weights, ids = out
    values, best = torch.softmax(logits, dim=-1).topk(weights.shape[-1], dim=-1)
    weights.copy_(values / values.sum(-1, keepdim=True) if renormalize else values)
    ids.copy_(best)


def fused_moe(x, w1, w2, topk_weights, topk_ids, activation):
    assert activation == "silu"
    rows = []
    for row, shares, experts in zip(x, topk_weights, topk_ids.tolist(), strict=True):
        total = torch.zeros_like(row)
        for share, expert in zip(shares, experts, strict=True):
            gate, up = (w1[expert] @ row).chunk(2)
            total += share * (w2[expert] @ (torch.nn.functional.silu(gate) * up))
        rows.append(total)
    return torch.stack(rows)


FUNCTIONS = {
    one.__name__: one
    for one in (rms_norm, fused_add_rms_norm, rotary_embedding, topk_softmax, fused_moe)
}


def register(runtime):
    """Registers the implementations that PROTECTED_KERNELS names."""
    for name in os.environ.get("PROTECTED_KERNELS", ",".join(FUNCTIONS)).split(","):
        if name:
            opmux.implementation(name, "acme.python", runtime=runtime, **OPTIONS)(FUNCTIONS[name])
