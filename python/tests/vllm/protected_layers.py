"""Runs vLLM's layers on the protected device without an engine, and prints what ran as JSON."""

import json

import protected_torch
import torch
from vllm.config import CompilationConfig, VllmConfig, set_current_vllm_config
from vllm.model_executor.layers.activation import GeluAndMul, SiluAndMul
from vllm.platforms import current_platform

import opmux
import opmux.torch
from opmux.vllm import register

DEVICE = "protected"


def layers(driver):
    """Which layers are replaced, and which implementations the calls of one run."""
    silu, gelu = SiluAndMul(), GeluAndMul()
    found = {
        "platform": type(current_platform).__name__,
        "classes": [type(silu).__name__, type(gelu).__name__],
        "reasons": [silu.opmux_reason, gelu.opmux_reason],
    }
    x = torch.randn(3, 16).to(DEVICE)
    wanted = SiluAndMul.forward_native(x.cpu())
    compiled = torch.compile(lambda x: opmux.ops.silu_and_mul(x), fullgraph=True, backend="eager")
    for call in (torch.ops.opmux.silu_and_mul, compiled):
        with opmux.expect("silu_and_mul/protected.kernel"):
            assert torch.allclose(call(x).cpu(), wanted, atol=1e-6)
    found["ran"] = []
    for refused in (b"", b"silu_and_mul"):
        driver.refuse(0, refused)
        with opmux.report() as calls:
            assert torch.allclose(silu(x).cpu(), wanted, atol=1e-6)
        found["ran"].append([calls.implementation, calls.fell_back])
    assert gelu(x).device == x.device
    return found


if __name__ == "__main__":
    register()
    eager = VllmConfig(compilation_config=CompilationConfig(mode=0))
    with set_current_vllm_config(eager), torch.inference_mode():
        print(json.dumps(layers(protected_torch.connect(opmux.default_runtime()))))
