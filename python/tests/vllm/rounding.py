"""How vLLM's kernels round on this processor."""

from functools import cache

import torch

FACTOR = 1 + 9 * 2.0**-7  # its square is nearer to the next larger bf16 value than to the smaller


@cache
def vllm_truncates():
    """Returns whether vLLM's CPU kernels truncate f32 results to bf16, as they do in vectors on
    processors without bf16 instructions. Squares FACTOR, as the first half of a rotated query
    does."""
    import vllm._custom_ops as kernels

    table = torch.tensor([[FACTOR] * 32 + [0.0] * 32], dtype=torch.bfloat16)
    query = torch.full((1, 64), FACTOR, dtype=torch.bfloat16)
    places = torch.zeros(1, dtype=torch.int64)
    kernels.rotary_embedding(places, query, query.clone(), 64, table, True)
    exact = torch.tensor(FACTOR * FACTOR)
    rounded = exact.bfloat16().float()
    truncated = (exact.view(torch.int32) & ~0xFFFF).view(torch.float32)
    assert truncated != rounded
    assert query[0, 0].float() in (truncated, rounded)
    return bool(query[0, 0].float() == truncated)
