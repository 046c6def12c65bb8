"""The operators as calls of the corresponding torch functions."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F


def rms_norm(x: Any, weight: Any, eps: float, round_before_weight: bool) -> Any:
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def softmax(x: Any, scale: float) -> Any:
    return torch.softmax(x if scale == 1 else x * scale, dim=-1)


def silu_and_mul(x: Any) -> Any:
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def gelu_and_mul(x: Any, approximate: str) -> Any:
    gate, up = x.chunk(2, dim=-1)
    return F.gelu(gate, approximate=approximate) * up


def linear(x: Any, weight: Any, bias: Any) -> Any:
    return F.linear(x, weight, bias)


def matmul(a: Any, b: Any) -> Any:
    return torch.matmul(a, b)


def embedding(weight: Any, ids: Any) -> Any:
    return F.embedding(ids, weight)


def attention(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float | None, *_: Any) -> Any:
    y = F.scaled_dot_product_attention(
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.transpose(1, 2),
        attn_mask=mask,
        is_causal=causal,
        scale=scale,
        enable_gqa=q.shape[2] != k.shape[2],
    )
    return y.transpose(1, 2)
