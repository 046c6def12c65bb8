"""The operators written in elementary torch functions, for torch.compile."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from ._eager import embedding as embedding
from ._eager import linear as linear
from ._eager import matmul as matmul


def rms_norm(x: Any, weight: Any, eps: float, round_before_weight: bool) -> Any:
    wide = x.float()
    unit = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    if weight is None:
        return unit.to(x.dtype)
    if round_before_weight:
        unit = unit.to(weight.dtype).float()
    return (unit * weight.float()).to(x.dtype)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    wide = x.float()
    centred = wide - wide.mean(-1, keepdim=True)
    unit = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    unit = unit if weight is None else unit * weight.float()
    return (unit if bias is None else unit + bias.float()).to(x.dtype)


def softmax(x: Any, scale: float) -> Any:
    return torch.softmax(x.float() * scale, dim=-1).to(x.dtype)


def silu_and_mul(x: Any) -> Any:
    gate, up = x.float().chunk(2, dim=-1)
    return (F.silu(gate) * up).to(x.dtype)


def gelu_and_mul(x: Any, approximate: str) -> Any:
    gate, up = x.float().chunk(2, dim=-1)
    return (F.gelu(gate, approximate=approximate) * up).to(x.dtype)


def attention(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float | None, *_: Any) -> Any:
    groups = q.shape[2] // k.shape[2]
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    wide = (t.transpose(1, 2).float() for t in (q, k, v))
    query, key, value = wide
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    logits = query @ key.transpose(-1, -2) * scale
    if causal:
        rows, columns = logits.shape[-2:]
        seen = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        logits = logits.masked_fill(~seen, -math.inf)
    if mask is not None:
        logits = logits.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else logits + mask
    weights = torch.softmax(logits, dim=-1).nan_to_num(0.0)
    return (weights @ value).transpose(1, 2).to(q.dtype)
