"""Verifiers that refuse the calls for which torch's functions differ from the operators."""

from __future__ import annotations

from typing import Any


def _same_dtype(*tensors: Any) -> bool | str:
    found = {t.dtype for t in tensors if t is not None}
    return len(found) == 1 or "torch requires one dtype for all tensors"


def rms_norm(x: Any, weight: Any, eps: float, round_before_weight: bool) -> bool | str:
    if round_before_weight:
        return "torch rounds once, after the weight"
    return _same_dtype(x, weight)


def layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> bool | str:
    return _same_dtype(x, weight, bias)


def linear(x: Any, weight: Any, bias: Any) -> bool | str:
    return _same_dtype(x, weight, bias)


def matmul(a: Any, b: Any) -> bool | str:
    return _same_dtype(a, b)


def _attention(q: Any, k: Any, v: Any, window: int, sink: Any, softcap: float) -> bool | str:
    if window or sink is not None or softcap:
        return "torch has no window, sink or softcap"
    return _same_dtype(q, k, v)


def attention(
    q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: Any, window: int, sink: Any,
    softcap: float,
) -> bool | str:  # fmt: skip
    if causal and mask is not None:
        return "torch takes a mask or causal, not both"
    if causal and q.shape[1] != k.shape[1]:
        return "torch aligns the first query with the first key, the operator the last ones"
    if mask is not None:
        return "fully masked rows are NaN in torch but zero in the operator"
    return _attention(q, k, v, window, sink, softcap)


def attention_composite(
    q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: Any, window: int, sink: Any,
    softcap: float,
) -> bool | str:  # fmt: skip
    return _attention(q, k, v, window, sink, softcap)
