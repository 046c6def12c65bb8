"""Attention over vLLM's paged cache, and the writing of keys and values to the cache. opmux
replaces both or neither, because vLLM's and opmux's kernels order the elements of a block
differently."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from .. import ops
from ._settings import Settings

_vllm: Any = import_module("vllm.v1.attention.backends.cpu_attn")
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def _halves(cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Splits a cache [blocks, heads, places, 2 * size] into keys and values, each a view [blocks,
    places, heads, size] in which the rows of a head are contiguous."""
    blocks, heads, places, both = cache.shape
    rows = cache.view(blocks, heads, 2 * places, both // 2)
    return rows[:, :, :places].transpose(1, 2), rows[:, :, places:].transpose(1, 2)


def _multiplies_tiles() -> bool:
    """Returns whether vLLM would use its AMX tile kernel for the model that is being created."""
    dtype: torch.dtype = torch.get_default_dtype()
    return dtype == torch.bfloat16 and torch.cpu._is_amx_tile_supported()


class Attention(_vllm.CPUAttentionBackendImpl):  # type: ignore[misc]
    """One layer's attention."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opmux_reason = self._reason_against(Settings.current())
        self._window = max(self.sliding_window, 0)
        self._cache: torch.Tensor | None = None
        self._keys = self._values = torch.empty(0)

    def _reason_against(self, settings: Settings) -> str:
        """Returns why vLLM keeps this layer; empty if opmux takes it. The result is the same for
        all layers of a model that share a cache."""
        if self.attn_type != "decoder":
            return f"it is {self.attn_type} attention"
        if self.alibi_slopes is not None:
            return "it uses ALiBi slopes"
        if self.is_fp8_kv_cache:
            return "its cache is quantized"
        if settings.exact:
            return "vLLM sums in a different order than opmux"
        if not settings.asked and _multiplies_tiles():
            return "vLLM's AMX tile layout of the cache is faster for prompts"
        return settings.reason_against("attention")

    def _split(self, cache: torch.Tensor) -> None:
        if cache is not self._cache:
            self._cache = cache
            self._keys, self._values = _halves(cache)

    def do_kv_cache_update(
        self, layer: Any, key: Any, value: Any, kv_cache: Any, slot_mapping: Any
    ) -> None:
        """Writes the keys and values of a step's tokens to the cache."""
        if self.opmux_reason:
            super().do_kv_cache_update(layer, key, value, kv_cache, slot_mapping)
            return
        self._split(kv_cache)
        count = slot_mapping.shape[0]
        if count != key.shape[0]:  # the step was padded
            key, value = key[:count], value[:count]
        ops.reshape_and_cache(self._keys, self._values, key, value, slot_mapping)

    def forward(
        self, layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any,
        output: Any, output_scale: Any = None, output_block_scale: Any = None,
    ) -> Any:  # fmt: skip
        """Attends to the keys and values in the cache."""
        if attn_metadata is None:  # vLLM's warm-up computes nothing
            return output
        if self.opmux_reason:
            return super().forward(
                layer, query, key, value, kv_cache, attn_metadata, output, output_scale,
                output_block_scale,
            )  # fmt: skip
        if attn_metadata.dynamic_causal is not None or output_scale is not None:
            raise NotImplementedError("opmux: per-token causal attention or scaled output")
        self._split(kv_cache)
        count = attn_metadata.num_actual_tokens
        result = output
        if count != query.shape[0]:
            query, result = query[:count], output[:count]
        ops.paged_attention(
            query, self._keys, self._values, attn_metadata.block_table, attn_metadata.seq_lens,
            attn_metadata.query_start_loc, attn_metadata.causal, self.scale, self._window,
            self.sinks, self.logits_soft_cap, out=result,
        )  # fmt: skip
        return output


class Backend(_vllm.CPUAttentionBackend):  # type: ignore[misc]
    """vLLM's CPU attention backend with opmux's layer class. It keeps the name that vLLM's registry
    looks for."""

    @staticmethod
    def get_impl_cls() -> type:
        """Returns the class of a layer's attention."""
        return Attention
