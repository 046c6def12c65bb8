"""The operators that one step of the test Llama runs."""

# Calls of each operator in one step of a Llama with four layers.
STEP = {
    "rms_norm": 1, "fused_add_rms_norm": 8, "silu_and_mul": 4, "rotary_embedding": 4,
    "linear": 17, "paged_attention": 4, "reshape_and_cache": 4,
}  # fmt: skip


def assert_steps(answer, tokens, step):
    """Asserts that whole steps ran. Prompts may enter one by one in the first steps, so there may
    be a few more steps than tokens."""
    calls = answer.per_operator()
    steps = calls["paged_attention"] // 4
    assert tokens <= steps <= tokens + 8
    assert calls == {name: count * steps for name, count in step.items()}
    assert set(answer.calls()) <= set(answer.after["chosen"])
    assert answer.after["not_ok"] == {}


def assert_own_kernels_ran(answer):
    backends = answer.backends()
    assert backends.pop("linear", {"onednn"}) <= {"onednn", "simd"}
    assert set().union(*backends.values()) == {"simd"}
