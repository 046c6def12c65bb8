"""vLLM generates the same tokens with and without opmux. The tests read the implementations that
ran from the worker's status file."""

import pytest
from llama_step import STEP, assert_own_kernels_ran, assert_steps
from rounding import vllm_truncates

# The operators that remain in a compiled graph; the compiler fuses the others.
COMPILED_STEP = {"linear": 17, "paged_attention": 4, "reshape_and_cache": 4}


def test_a_short_f32_run_has_the_tokens_of_plain_vllm(engine):
    plain, ours = engine("float32", 32, plain=True), engine("float32", 32)
    assert plain.after is None
    assert ours.tokens == plain.tokens
    assert_steps(ours, 32, STEP)
    assert_own_kernels_ran(ours)
    summary = ours.after["summary"]
    assert summary.startswith("opmux: 7 of 9 operator kinds, 42 calls per step; not: ")


@pytest.mark.full
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_f32_tokens_are_those_of_plain_vllm(engine, eager):
    plain, ours = engine("float32", 200, plain=True), engine("float32", 200, eager=eager)
    assert [len(one) for one in ours.tokens] == [200] * 8
    assert ours.tokens == plain.tokens
    assert_steps(ours, 200, STEP if eager else COMPILED_STEP)
    assert_own_kernels_ran(ours)
    reason = ours.after["left"].get("RMSNorm", "")
    assert reason == ("" if eager else "the compiler fuses it with its neighbours, which is faster")


@pytest.mark.full
def test_every_operator_can_be_a_part_of_the_compiled_graph(engine):
    kinds = ["norm", "activation", "rotary", "linear", "attention"]
    ours = engine("float32", 200, eager=False, opmux={"kinds": kinds})
    assert ours.tokens == engine("float32", 200, plain=True).tokens
    assert_steps(ours, 200, STEP)
    assert_own_kernels_ran(ours)


@pytest.mark.full
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_a_mixture_of_experts_has_the_tokens_of_plain_vllm(engine, mixture, eager):
    plain = engine("float32", 32, plain=True, model=mixture)
    ours = engine("float32", 32, eager=eager, model=mixture)
    assert ours.tokens == plain.tokens
    step = {
        "rms_norm": 5, "fused_add_rms_norm": 4, "rotary_embedding": 2, "linear": 7,
        "paged_attention": 2, "reshape_and_cache": 2, "topk_softmax": 2, "fused_moe": 2,
    }  # fmt: skip
    if not eager:
        step = {k: n for k, n in step.items() if "norm" not in k and "rotary" not in k}
    calls = ours.per_operator()
    steps = calls["topk_softmax"] // 2
    assert 32 <= steps <= 40
    assert calls == {name: count * steps for name, count in step.items()}
    assert ours.backends()["fused_moe"] == {"onednn"}
    assert ours.after["not_ok"] == {}


def assert_near(ours, plain, tolerance):
    """Compares the log probabilities of the best tokens, up to the first differing token."""
    for a, b, p, q in zip(plain.tokens, ours.tokens, plain.logprobs, ours.logprobs, strict=True):
        same = next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a) - 1)
        pairs = zip(p[: same + 1], q[: same + 1], strict=True)
        assert max(abs(x - y) for x, y in pairs) < tolerance


def exact_step():
    """The calls of a step with exact results in bf16, besides those of norms."""
    rotary = {} if vllm_truncates() else {"rotary_embedding": 4}
    return {"silu_and_mul": 4, **rotary}


def assert_truncated_layers_are_left(ours):
    reason = ours.after["left"].get("RotaryEmbedding", "")
    assert reason.startswith("vLLM's kernel rounds ") == vllm_truncates()


@pytest.mark.full
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_exact_bf16_tokens_are_those_of_plain_eager_vllm(engine, eager):
    plain = engine("bfloat16", 200, plain=True)
    settings = {"exact": True, "kinds": ["activation", "rotary"]}
    ours = engine("bfloat16", 200, eager=eager, opmux=settings)
    if eager:  # a compiled graph rounds vLLM's layers in other places
        assert ours.tokens == plain.tokens
    calls = ours.per_operator()
    steps = calls["silu_and_mul"] // 4
    assert steps >= 200 and ours.after["not_ok"] == {}
    assert calls == {name: count * steps for name, count in exact_step().items()}
    assert_truncated_layers_are_left(ours)
    assert_own_kernels_ran(ours)


@pytest.mark.full
def test_exact_bf16_tokens_with_norms_are_those_of_plain_eager_vllm(engine):
    """opmux replaces norms, activations and rotary embeddings, not linear layers or attention."""
    plain = engine("bfloat16", 200, plain=True)
    ours = engine("bfloat16", 200, opmux={"exact": True})
    assert ours.tokens == plain.tokens
    calls = ours.per_operator()
    steps = calls["silu_and_mul"] // 4
    assert steps >= 200 and ours.after["not_ok"] == {}
    step = {"rms_norm": 9, **exact_step()}
    assert calls == {name: count * steps for name, count in step.items()}
    assert ours.backends() == {name: {"vllm"} if name == "rms_norm" else {"simd"} for name in step}
    assert_truncated_layers_are_left(ours)
    assert ours.after["left"]["QKVParallelLinear"] == "vLLM sums in a different order than opmux"


@pytest.mark.full
def test_norms_of_their_own_kernel_are_a_rounding_away_from_those_of_plain_vllm(engine):
    """opmux sums the mean in a different order, so two of a million elements round differently."""
    plain = engine("bfloat16", 200, plain=True)
    ours = engine("bfloat16", 200, opmux={"exact": True}, OPMUX_DENY_VENDORS="vllm")
    assert_near(ours, plain, 2.0**-5)
    assert_own_kernels_ran(ours)


@pytest.mark.full
def test_bf16_probabilities_are_near_those_of_plain_vllm(engine):
    settings = {"kinds": ["norm", "activation", "rotary", "linear", "attention"]}
    plain, ours = engine("bfloat16", 200, plain=True), engine("bfloat16", 200, opmux=settings)
    # bf16 has 8 significant bits; each of the 4 layers rounds about ten values in sequence.
    assert_near(ours, plain, 10 * 4 * 2.0**-8)
    assert_steps(ours, 200, STEP)
    assert_own_kernels_ran(ours)


@pytest.mark.full
def test_only_the_kinds_that_are_asked_for_are_taken_over(engine):
    ours = engine("float32", 32, opmux={"kinds": ["rotary"]})
    assert ours.tokens == engine("float32", 32, plain=True).tokens
    assert set(ours.per_operator()) == {"rotary_embedding"}
    assert ours.after["left"]["RMSNorm"] == "it was not requested"
