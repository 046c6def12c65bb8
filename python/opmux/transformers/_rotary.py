"""Rotary embeddings: the table of angles is made once per step, and each layer applies it in
place."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from .. import ops

_CALL = "apply_rotary_pos_emb(query_states, key_states, cos, sin"
_patched: dict[str, tuple[int, Callable[..., Any]]] = {}


def angles(self: Any, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Replaces the forward of the model's rotary module. Instead of (cos, sin) it returns a table
    of cosines and sines with one row per token of the step, and the row of each token."""
    cos, sin = type(self).forward(self, *args, **kwargs)
    half = cos.shape[-1] // 2
    table = torch.cat((cos[..., :half], sin[..., :half]), dim=-1).reshape(-1, 2 * half)
    rows = torch.arange(table.shape[0]).view(cos.shape[0], cos.shape[1])
    return table, rows


def _apply(q: torch.Tensor, k: torch.Tensor, table: torch.Tensor, rows: torch.Tensor) -> None:
    if rows.shape[0] != q.shape[0]:
        rows = rows.expand(q.shape[0], -1)
    ops.rotary_embedding(q.transpose(1, 2), k.transpose(1, 2), rows, table)


def _stand_in(original: Callable[..., Any]) -> Callable[..., Any]:
    def apply_rotary_pos_emb(q: Any, k: Any, cos: Any, sin: Any, *args: Any, **kwargs: Any) -> Any:
        if sin.dtype != torch.int64:  # real sines: the call is from a model that does not use opmux
            return original(q, k, cos, sin, *args, **kwargs)
        _apply(q, k, cos, sin)
        return q, k

    return apply_rotary_pos_emb


def _agrees(original: Callable[..., Any]) -> bool:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, heads, 3, 8, generator=generator) for heads in (2, 1))
    half = torch.randn(1, 3, 4, generator=generator)
    cos, sin = torch.cat((half, half), -1).cos(), torch.cat((half, half), -1).sin()
    with torch.no_grad():
        wanted = original(q, k, cos, sin)
        table = torch.cat((cos[..., :4], sin[..., :4]), -1).view(3, 8)
        own_q, own_k = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k))
        _apply(own_q, own_k, table, torch.arange(3).view(1, 3))
    ours = own_q, own_k
    return all(torch.allclose(a, b, atol=1e-5) for a, b in zip(wanted, ours, strict=True))


def reason_against(module: ModuleType, attentions: list[type]) -> str:
    """Returns why a model family's rotary embedding cannot be replaced; empty if it can."""
    original = getattr(module, "apply_rotary_pos_emb", None)
    if original is None:
        return "its family has no apply_rotary_pos_emb"
    for attention in attentions:
        if _CALL not in inspect.getsource(attention):
            return f"{attention.__name__} applies it in a different way"
    if module.__name__ in _patched:
        return ""
    try:
        return "" if _agrees(original) else "it pairs the elements in a different way"
    except Exception as error:  # the family's function may reject our arguments in any way
        return f"its function takes different arguments: {error}"


def patch(module: ModuleType) -> None:
    """Replaces a model family's function by opmux's; `_patched` counts the uses."""
    times, original = _patched.get(module.__name__, (0, module.apply_rotary_pos_emb))
    if times == 0:
        module.__dict__["apply_rotary_pos_emb"] = _stand_in(original)
    _patched[module.__name__] = times + 1, original


def restore(module_name: str) -> None:
    """Undoes one `patch`."""
    times, original = _patched.pop(module_name)
    if times > 1:
        _patched[module_name] = times - 1, original
    else:
        sys.modules[module_name].__dict__["apply_rotary_pos_emb"] = original
