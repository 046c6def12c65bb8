"""vLLM's computations, which are the last candidates on devices, agree with the reference."""

import pytest
import torch

import opmux
from opmux.vllm import _native

STREAM = {"stream": 0}


@pytest.fixture(autouse=True)
def reference():
    torch.manual_seed(0)
    with torch.inference_mode(), opmux.scope(require=["reference"]):
        yield


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms(dtype, rounds):
    x, residual = (torch.randn(3, 32).to(dtype) for _ in range(2))
    weight = torch.randn(32).to(dtype)
    for given in (weight, None):
        wanted = opmux.ops.rms_norm(x, given, 1e-5, rounds)
        assert torch.allclose(_native.rms_norm(x, given, 1e-5, rounds, **STREAM), wanted)
        one, two = (x.clone(), residual.clone()), (x.clone(), residual.clone())
        opmux.ops.fused_add_rms_norm(*one, given, 1e-5, rounds)
        _native.fused_add_rms_norm(*two, given, 1e-5, rounds, **STREAM)
        assert torch.allclose(one[0], two[0]) and torch.equal(one[1], two[1])


def test_activations():
    x = torch.randn(3, 32)
    assert torch.allclose(_native.silu_and_mul(x, **STREAM), opmux.ops.silu_and_mul(x))
    for how in ("none", "tanh"):
        wanted = opmux.ops.gelu_and_mul(x, how)
        assert torch.allclose(_native.gelu_and_mul(x, how, **STREAM), wanted, atol=1e-6)


@pytest.mark.parametrize("style", ["neox", "gptj"])
def test_rotary_embeddings(style):
    angles = torch.randn(9, 4)
    table = torch.cat((angles.cos(), angles.sin()), -1)
    positions = torch.tensor([8, 0, 3])
    for keys in (torch.randn(3, 2, 16), None):
        queries = torch.randn(3, 4, 16)
        one, two = ([None if t is None else t.clone() for t in (queries, keys)] for _ in range(2))
        opmux.ops.rotary_embedding(*one, positions, table, style)
        _native.rotary_embedding(*two, positions, table, style, **STREAM)
        assert torch.allclose(one[0], two[0], atol=1e-6)
        assert keys is None or torch.allclose(one[1], two[1], atol=1e-6)


@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh"])
def test_experts(activation):
    x, w1, w2 = torch.randn(5, 16), torch.randn(4, 48, 16), torch.randn(4, 16, 24)
    logits = torch.randn(5, 4)
    one, two = ((torch.empty(5, 2), torch.empty(5, 2, dtype=torch.int32)) for _ in range(2))
    opmux.ops.topk_softmax(logits, True, out=one)
    _native.topk_softmax(logits, True, out=two, **STREAM)
    assert torch.allclose(one[0], two[0]) and torch.equal(one[1], two[1])
    given = x, w1, w2, *one, activation
    wanted = opmux.ops.fused_moe(*given)
    assert torch.allclose(_native.fused_moe(*given, **STREAM), wanted, rtol=1e-4, atol=1e-4)
