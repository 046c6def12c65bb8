"""opmux's attention with the signature that Hugging Face models call."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .. import ops
from .._errors import InvalidArgument

NAME = "opmux"
_NOT_OURS = ("position_bias", "cache")
"""Keyword arguments that the operator does not support: calls with them use torch's function."""


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of tensors [B, heads, tokens, D]; keys and values may have fewer heads. The mask
    hides keys, also those outside of a sliding window. Without a mask, attention is causal if the
    module is."""
    if dropout or any(kwargs.get(name) is not None for name in _NOT_OURS):
        if s_aux is not None:
            raise InvalidArgument(
                "attention with a sink (s_aux) cannot be combined with dropout, a position bias or "
                "a paged cache: torch's function, which these need, ignores the sink",
                "python.option",
            )
        kwargs.update(softcap=softcap)
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, is_causal, **kwargs
        )
    rows = query.shape[2]
    decoder: bool = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = rows > 1 and attention_mask is None and decoder
    if causal and key.shape[2] != rows:  # a static cache, longer than the tokens in it
        key, value = key[:, :, :rows], value[:, :, :rows]
    elif attention_mask is not None and attention_mask.shape[-1] != key.shape[2]:
        attention_mask = attention_mask[..., : key.shape[2]]
    y = ops.attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        attention_mask,
        causal,
        scaling,
        0,
        s_aux,
        softcap or 0.0,
    )
    return y, None


def register() -> None:
    """Registers `attn_implementation="opmux"` with transformers, and the masks that it needs."""
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
