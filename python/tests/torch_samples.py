"""Arguments for a call of each standard operator, as torch tensors."""

import torch


def samples():
    """Sample arguments of a call, by operator."""
    torch.manual_seed(0)
    f = torch.randn
    q, k, v = f(2, 3, 4, 8), f(2, 5, 2, 8), f(2, 5, 2, 8)
    caches = f(3, 4, 2, 8), f(3, 4, 2, 8)
    ids = torch.tensor([[0, 1], [2, 1], [1, 0]])
    table = torch.tensor([[0, 1], [2, 0]])
    return {
        "attention": (q, k, v, None, True, 0.5),
        "embedding": (f(7, 4), torch.tensor([[1, 2, 6]])),
        "fused_add_rms_norm": (f(3, 8), f(3, 8), f(8), 1e-5, True),
        "fused_moe": (f(3, 8), f(3, 12, 8), f(3, 8, 6), torch.rand(3, 2), ids, "gelu"),
        "gelu_and_mul": (f(3, 8), "tanh"),
        "layer_norm": (f(3, 8), f(8), f(8)),
        "linear": (f(2, 3, 8), f(4, 8), f(4)),
        "linear_w4a16": (
            f(3, 8),
            torch.randint(0, 255, (4, 4), dtype=torch.uint8),
            torch.rand(4, 2),
        ),
        "linear_w8a8": (
            f(3, 8),
            torch.randint(-9, 9, (4, 8), dtype=torch.int8),
            torch.rand(4),
        ),
        "matmul": (f(2, 3, 4), f(2, 4, 5)),
        "paged_attention": (
            f(3, 4, 8),
            *caches,
            table,
            torch.tensor([5, 3]),
            torch.tensor([0, 1, 3]),
        ),
        "reshape_and_cache": (*caches, f(2, 2, 8), f(2, 2, 8), torch.tensor([3, 9])),
        "rms_norm": (f(2, 3, 8), f(8), 1e-5),
        "rotary_embedding": (f(3, 4, 8), f(3, 2, 8), torch.arange(3), f(5, 8), "gptj"),
        "sample": (f(3, 16),),
        "silu_and_mul": (f(3, 8),),
        "softmax": (f(3, 8), 0.5),
        "topk_softmax": (f(3, 16), True),
    }


def given_outputs(name):
    """The outputs that the caller must allocate because their shape cannot be inferred; or None."""
    if name == "topk_softmax":
        return torch.empty(3, 2), torch.empty(3, 2, dtype=torch.int64)
    return None
