"""With `exact`, vLLM keeps the layers whose results opmux would round differently."""

import pytest
import torch
from rounding import vllm_truncates

import opmux
from opmux.vllm import _stand_ins

_stand_ins.hook()


def calls(operator):
    return sum(s.calls for s in opmux.stats() if s.implementation.startswith(operator + "/"))


@pytest.fixture
def layers(request):
    """An activation and a rotary embedding of an engine with exact results."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.activation import SiluAndMul
    from vllm.model_executor.layers.rotary_embedding import get_rope

    config = VllmConfig(additional_config={"opmux": {"exact": True}})
    config.compilation_config.custom_ops = ["all"]
    with set_current_vllm_config(config):
        rope = get_rope(32, max_position=128, rope_parameters={"rope_type": "default"})
        yield torch.nn.ModuleDict({"activation": SiluAndMul(), "rotary": rope})


def test_layers_with_the_same_bits_run_on_opmux(layers):
    _stand_ins.return_inexact(layers, torch.float16)
    assert [layer.opmux_reason for layer in layers.values()] == ["", ""]
    before = calls("silu_and_mul")
    layers["activation"](torch.randn(3, 64).half())
    assert calls("silu_and_mul") == before + 1


def test_layers_that_vllm_truncates_stay_with_vllm(layers):
    _stand_ins.return_inexact(layers, torch.bfloat16)
    assert layers["activation"].opmux_reason == ""
    reason = layers["rotary"].opmux_reason
    assert reason.startswith("vLLM's kernel rounds ") == vllm_truncates()
    before = calls("rotary_embedding")
    q, k = torch.randn(3, 64).bfloat16(), torch.randn(3, 32).bfloat16()
    layers["rotary"](torch.arange(3), q, k)
    assert calls("rotary_embedding") == before + (not vllm_truncates())


def test_a_layer_with_other_bits_is_returned_to_vllm(layers, monkeypatch):
    """vLLM's activation is made to truncate, so that the processor does not matter."""
    layer = layers["activation"]
    original = layer.forward_cpu

    def truncated(x):
        wide = original(x.float())
        return (wide.view(torch.int32) & ~0xFFFF).view(torch.float32).to(x.dtype)

    monkeypatch.setattr(layer, "forward_cpu", truncated)
    _stand_ins.return_inexact(layers, torch.bfloat16)
    assert " of 8192 sample values differently" in layer.opmux_reason
    before = calls("silu_and_mul")
    layer(torch.randn(3, 64).bfloat16())
    assert calls("silu_and_mul") == before


def test_a_layer_that_cannot_be_compared_is_returned_to_vllm(layers, monkeypatch):
    layer = layers["rotary"]

    def refuse(*arguments):
        raise TypeError("forward_cpu() misses an argument")

    monkeypatch.setattr(layer, "forward_cpu", refuse)
    _stand_ins.return_inexact(layers, torch.float16)
    assert layer.opmux_reason == (
        "it could not be compared with vLLM's layer: TypeError: forward_cpu() misses an argument"
    )
    assert layers["activation"].opmux_reason == ""
    before = calls("rotary_embedding")
    monkeypatch.undo()
    layer(torch.arange(3), torch.randn(3, 64).half(), torch.randn(3, 32).half())
    assert calls("rotary_embedding") == before
