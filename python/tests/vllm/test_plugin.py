"""Loading opmux into a vLLM process, without an engine."""

import os
import pathlib
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest
import torch

import opmux
from opmux.vllm import KINDS, Settings, _devices, _norms, _plugin, _stand_ins


def in_a_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


def test_vllm_finds_the_plugin():
    (found,) = [e for e in entry_points(group="vllm.general_plugins") if e.name == "opmux"]
    assert found.value == "opmux.vllm:register"


def test_registering_twice_changes_nothing_more():
    code = """
import opmux.vllm
from vllm import ir
from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.layers import utils
opmux.vllm.register()
first = dict(op_registry_oot), utils.dispatch_cpu_unquantized_gemm
opmux.vllm.register()
assert first == (dict(op_registry_oot), utils.dispatch_cpu_unquantized_gemm)
assert "Llama3RotaryEmbedding" in op_registry_oot
assert "FourierRotaryEmbedding" not in op_registry_oot
print(sorted(p for p in ir.ops.fused_add_rms_norm.impls if "opmux" in p))
"""
    assert in_a_process(code) == "['opmux', 'opmux_exact']"


def test_switched_off_it_leaves_vllm_as_it_is():
    code = """
import opmux.vllm
opmux.vllm.register()
from vllm import ir
from vllm.model_executor.custom_op import op_registry_oot
print("opmux" in ir.ops.rms_norm.impls, op_registry_oot)
"""
    assert in_a_process(code, OPMUX_DISABLE="1") == "False {}"


def test_what_cannot_be_put_in_is_left_to_vllm(monkeypatch, caplog):
    def broken(name):
        raise RuntimeError(f"no {name}")

    monkeypatch.setattr(_plugin, "_hook", broken)
    monkeypatch.setattr(_plugin, "_done", set())
    monkeypatch.delenv("OPMUX_DISABLE", raising=False)
    _plugin.register()
    assert _plugin._done == set()


def settings(**entry):
    return Settings.read(SimpleNamespace(additional_config={"opmux": entry}))


def test_settings_are_those_of_the_engines_configuration():
    assert Settings.read(None) == Settings(KINDS, asked=False, exact=False)
    assert settings(kinds=["norm"], exact=True) == Settings(("norm",), asked=True, exact=True)
    assert settings(kinds=["norm"]).reason_against("linear") == "it was not requested"


@pytest.mark.parametrize("entry", [{"kinds": ["gemm"]}, {"kinds": "norm"}, {"exactly": True}])
def test_settings_that_are_not_known_are_refused(entry):
    with pytest.raises(opmux.InvalidArgument):
        settings(**entry)


@pytest.fixture
def elsewhere(monkeypatch):
    """Pretends that vLLM's platform is not the CPU; returns the setter of its device."""
    monkeypatch.setattr(_devices, "on_cpu", lambda: False)
    _devices.start(None)
    yield lambda kind: monkeypatch.setattr(_devices, "device", lambda: torch.device(kind))
    _devices.start(None)


def test_linear_layers_attention_and_exact_results_are_for_the_cpu(elsewhere):
    ours = settings(kinds=["linear", "attention", "rotary"])
    assert (
        ours.reason_against("linear") == "opmux replaces linear layers only on vLLM's CPU platform"
    )
    assert ours.reason_against("attention").startswith("opmux replaces attention only")
    assert ours.reason_against("rotary") == ""
    exact = settings(exact=True)
    assert exact.reason_against("rotary") == "exact results are those of vLLM's CPU platform"


def test_the_engine_decides_what_is_replaced_on_a_device(elsewhere):
    elsewhere("cpu")
    for operator in ("rms_norm", "fused_add_rms_norm", "silu_and_mul", "rotary_embedding"):
        assert _devices.reason_against(operator, torch.bfloat16) == ""
        assert _devices.reason_against(operator, torch.float8_e5m2) != ""
    with opmux.scope(deny=["gelu_and_mul/*"]):
        reason = _devices.reason_against("gelu_and_mul")
    assert reason.startswith("opmux has no gelu_and_mul that can run on cpu; gelu_and_mul/")
    assert _devices.reason_against("gelu_and_mul") == reason, "asked once for each model"
    _devices.start(None)
    assert _devices.reason_against("gelu_and_mul") == ""


def test_a_device_that_torch_cannot_use_is_left_to_vllm(elsewhere):
    elsewhere("xpu")
    assert _devices.reason_against("rms_norm").startswith("opmux cannot tell for rms_norm: ")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_exact_norms_and_activations_have_vllms_bits(dtype):
    from vllm import ir
    from vllm.model_executor.layers.activation import SiluAndMul

    generator = torch.Generator().manual_seed(0)
    x, residual = (torch.randn(64, 256, generator=generator).to(dtype) for _ in range(2))
    weight = torch.randn(256, generator=generator).to(dtype)
    wanted, stored = ir.ops.fused_add_rms_norm.impls["native"].impl_fn(x, residual, weight, 1e-6)
    with opmux.expect("rms_norm/simd.*"), torch.inference_mode():
        found, sums = _norms.exact_fused_add_rms_norm(x.clone(), residual.clone(), weight, 1e-6)
    assert torch.equal(sums, stored)
    agree = (found == wanted).float().mean()
    assert agree > 0.9999 if dtype == torch.bfloat16 else torch.allclose(found, wanted)
    _norms.offer_eager()
    _norms.offer_eager()
    with opmux.expect(_norms.EAGER), torch.inference_mode():
        found, _ = _norms.exact_fused_add_rms_norm(x.clone(), residual.clone(), weight, 1e-6)
        alone = _norms.rms_norm(x, weight, 1e-6)
    _norms._offered.pop().withdraw()
    assert torch.equal(found, wanted)
    assert torch.equal(alone, ir.ops.rms_norm.impls["native"].impl_fn(x, weight, 1e-6))
    if dtype == torch.bfloat16:
        exact = _stand_ins.EXACT[_stand_ins.silu_and_mul]
        with opmux.expect("silu_and_mul/simd.*"), torch.inference_mode():
            assert torch.equal(exact(None, x), SiluAndMul.forward_native(x))


def test_rotary_embeddings_have_vllms_bits():
    from vllm import _custom_ops

    qkv = torch.randn(5, 3 * 128).bfloat16()
    angles = torch.randn(32, 16)
    table = torch.cat((angles.cos(), angles.sin()), -1).bfloat16()
    positions = torch.tensor([3, 0, 31, 7, 8])
    layer = SimpleNamespace(
        head_size=32, is_neox_style=True, _match_cos_sin_cache_dtype=lambda query: table
    )
    wanted = qkv.clone()
    _custom_ops.rotary_embedding(positions, wanted[:, :128], wanted[:, 128:256], 32, table, True)
    with opmux.expect("rotary_embedding/simd.*"), torch.inference_mode():
        _stand_ins.rotary_embedding(layer, positions, qkv[:, :128], qkv[:, 128:256])
    # Without these instructions vLLM's kernel truncates to bfloat16, and opmux rounds to nearest.
    if "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
        assert torch.equal(qkv, wanted)
    else:
        steps = (qkv.view(torch.int16).int() - wanted.view(torch.int16).int()).abs()
        assert steps.max() <= 1
