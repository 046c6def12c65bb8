"""opmux on a vLLM platform other than the CPU: an out-of-tree platform whose model is in the memory
of the protected device of tests/device."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from llama_step import STEP

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
LIBRARIES = pathlib.Path(
    os.environ.get("TEST_DEVICE_LIBRARIES", ROOT / "build/release/tests/device/libraries")
)
ENTRY_POINTS = """[vllm.platform_plugins]
protected = protected_platform:activate
"""
ONLY_THE_CPU = "only on vLLM's CPU platform"
ON_THE_CPU = {"linear", "paged_attention", "reshape_and_cache"}


def install_platform(site):
    """Writes a distribution with the entry point of the platform into a folder of PYTHONPATH."""
    about = site / "protected_platform-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: protected-platform\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)


@pytest.fixture(scope="session")
def platform(tmp_path_factory):
    """The environment of a process in which vLLM finds the platform."""
    if not (LIBRARIES / "protected.so").exists():
        pytest.skip(f"there is no protected device in {LIBRARIES}: build the preset release-tests")
    site, plugins = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("plugins")
    install_platform(site)
    shutil.copy(LIBRARIES / "protected.so", plugins)
    return {
        "PYTHONPATH": os.pathsep.join(map(str, (site, HERE, HERE.parent / "device"))),
        "TEST_DEVICE_LIBRARIES": str(LIBRARIES),
        "OPMUX_PLUGIN_PATH": str(plugins),
        "OPMUX_PYTHON_PLUGINS": "protected_kernels",
    }


def steps(answer, step):
    """Asserts that whole steps ran, and returns their number."""
    calls = answer.per_operator()
    number = calls["rotary_embedding"] // step["rotary_embedding"]
    assert calls == {name: count * number for name, count in step.items()}
    assert answer.after["not_ok"] == {}
    return number


def test_a_model_on_the_device_runs_its_implementations(engine, platform):
    ours = engine("float32", 32, **platform)
    assert ours.tokens == engine("float32", 32, plain=True).tokens
    small = {k: n for k, n in STEP.items() if k not in ON_THE_CPU}
    assert 32 <= steps(ours, small) <= 40
    assert set(ours.calls()) == {
        "rms_norm/acme.python", "fused_add_rms_norm/acme.python", "rotary_embedding/acme.python",
        "silu_and_mul/protected.kernel",
    }  # fmt: skip
    left = ours.after["left"]
    for layer in ("QKVParallelLinear", "RowParallelLinear", "ParallelLMHead"):
        assert left[layer] == f"opmux replaces linear layers {ONLY_THE_CPU}"
    assert left["Attention"] == f"opmux replaces attention {ONLY_THE_CPU}"
    assert "RMSNorm" not in left and "SiluAndMul" not in left


def test_experts_on_the_device_have_the_tokens_of_the_cpu(engine, mixture, platform):
    """vLLM has no experts for platforms outside of its tree."""
    ours = engine("float32", 8, model=mixture, **platform)
    assert ours.tokens == engine("float32", 8, plain=True, model=mixture).tokens
    step = {
        "rms_norm": 5, "fused_add_rms_norm": 4, "rotary_embedding": 2, "topk_softmax": 2,
        "fused_moe": 2,
    }  # fmt: skip
    assert 8 <= steps(ours, step) <= 16
    assert set(ours.calls()) == {f"{name}/acme.python" for name in step}


@pytest.mark.full
def test_what_the_device_lacks_is_left_with_the_reason(engine, platform):
    ours = engine("float32", 32, **{**platform, "PROTECTED_KERNELS": "rms_norm"})
    assert ours.tokens == engine("float32", 32, plain=True).tokens
    assert set(ours.calls()) == {"rms_norm/acme.python", "silu_and_mul/protected.kernel"}
    reason = "opmux has no rotary_embedding that can run on ext_dev"
    assert ours.after["left"]["RotaryEmbedding"] == reason


@pytest.mark.full
def test_the_platform_has_the_tokens_of_the_cpu_without_opmux(engine, platform):
    plain = engine("float32", 32, plain=True, **platform)
    assert plain.tokens == engine("float32", 32, plain=True).tokens


def test_layers_fall_back_to_vllms_computation(platform, tmp_path):
    done = subprocess.run(
        [sys.executable, HERE / "protected_layers.py"],
        env={**os.environ, **platform, "OPMUX_STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "platform": "ProtectedPlatform",
        "classes": ["OpmuxSiluAndMul", "OpmuxGeluAndMul"],
        "reasons": ["", "opmux has no gelu_and_mul that can run on ext_dev"],
        "ran": [["silu_and_mul/protected.kernel", False], ["silu_and_mul/vllm_torch.native", True]],
    }
