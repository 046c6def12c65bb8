"""opmux in Hugging Face models: same tokens, the operators that ran, and a complete undo."""

# ruff: noqa: E402
from collections import Counter

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import formulas

import opmux
from opmux.transformers import use
from opmux.transformers.__main__ import generate, prompt, small_llama

SIZES = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
}
OPERATORS = ("rms_norm/*", "attention/*", "rotary_embedding/*", "*_and_mul/*")


def small(name, attention="sdpa", **more):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **more})
    made = getattr(transformers, f"{name}ForCausalLM")
    return made._from_config(config, attn_implementation=attention, dtype=torch.float32).eval()


def by_operator(calls):
    return Counter(one.partition("/")[0] for one in calls.implementations())


@pytest.fixture(scope="module")
def llama():
    return small_llama()


@pytest.fixture(scope="module")
def padded():
    ids = prompt(2, 9)
    mask = torch.ones_like(ids)
    mask[1, :4] = 0
    return {"ids": ids, "attention_mask": mask}


def test_prefill_and_decode_give_the_same_tokens(llama):
    wanted = generate(llama, prompt())
    with use(llama), opmux.expect("*/simd.*", "attention/onednn.*") as calls:
        assert torch.equal(generate(llama, prompt()), wanted)
    assert by_operator(calls) == {
        "rms_norm": 9 * 64,
        "attention": 4 * 64,
        "rotary_embedding": 4 * 64,
        "silu_and_mul": 4 * 64,
    }


def test_products_are_replaced_if_asked_for(llama):
    wanted = generate(llama, prompt(), tokens=16)
    with use(llama, only=("norm", "mlp", "linear")) as done, opmux.report() as calls:
        assert torch.equal(generate(llama, prompt(), tokens=16), wanted)
    assert by_operator(calls) == {"rms_norm": 144, "silu_and_mul": 64, "linear": 29 * 16}
    assert "29 x Linear -> linear" in str(done)


def test_padding_hides_tokens(llama, padded):
    wanted = generate(llama, tokens=24, **padded)
    with use(llama), opmux.expect(*OPERATORS):
        assert torch.equal(generate(llama, tokens=24, **padded), wanted)


def test_a_cache_of_fixed_size(llama, padded):
    fixed = {"cache_implementation": "static", "disable_compile": True}
    wanted = generate(llama, tokens=24, **padded)
    with use(llama), opmux.expect(*OPERATORS):
        assert torch.equal(generate(llama, tokens=24, **padded, **fixed), wanted)
        alone = generate(llama, prompt(), tokens=24, **fixed)
    assert torch.equal(alone, generate(llama, prompt(), tokens=24))


def test_logits_of_bf16_stay_near():
    model = small_llama(torch.bfloat16)
    with torch.no_grad():
        exact = small_llama()(prompt()).logits
        wanted = model(prompt()).logits.float()
        with use(model), opmux.expect(*OPERATORS):
            found = model(prompt()).logits.float()
    ours, theirs = (found - exact).abs().max(), (wanted - exact).abs().max()
    assert ours <= 1.5 * theirs + 1e-3


FAMILIES = {
    "Granite": {},
    "Olmo2": {},
    "Phi3": {},
    "Qwen2": {},
    "Qwen3": {},
    "Mistral": {"sliding_window": 8},
    "Gemma": {"hidden_activation": "gelu_pytorch_tanh"},
    "Gemma2": {
        "attention": "eager",
        "sliding_window": 8,
        "hidden_activation": "gelu_pytorch_tanh",
    },
}


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families(name, padded):
    model = small(name, **FAMILIES[name])
    wanted = generate(model, padded["ids"] % 128, tokens=16)
    with use(model) as done, opmux.expect(*OPERATORS) as calls:
        assert torch.equal(generate(model, padded["ids"] % 128, tokens=16), wanted)
    assert not done.kept, str(done)
    gated = "gelu_and_mul" if name.startswith("Gemma") else "silu_and_mul"
    assert set(by_operator(calls)) == {"rms_norm", "attention", "rotary_embedding", gated}


def test_the_summary_says_what_was_replaced_and_what_was_not_and_why():
    model = small("Mixtral", num_local_experts=2)
    wanted = generate(model, prompt(1, 5) % 128, tokens=4)
    with use(model, only=("norm", "mlp", "attention")) as done:
        text = str(done)
        assert torch.equal(generate(model, prompt(1, 5) % 128, tokens=4), wanted)
    assert "5 x MixtralRMSNorm -> rms_norm" in text
    assert "MixtralRotaryEmbedding: it was not requested" in text
    assert "MixtralExperts: it has no submodule" in text


def test_heads_may_have_a_sink():
    model = small("GptOss", "eager", num_local_experts=2, num_experts_per_tok=1, sliding_window=8)
    wanted = generate(model, prompt(1, 11) % 128, tokens=8)
    with use(model, only=("attention",)), opmux.expect("attention/*"):
        assert torch.equal(generate(model, prompt(1, 11) % 128, tokens=8), wanted)


def test_norms_of_layers():
    model = small("Phi")
    wanted = generate(model, prompt(1, 5) % 128, tokens=8)
    with use(model, only=("norm",)) as done, opmux.expect("layer_norm/*"):
        assert torch.equal(generate(model, prompt(1, 5) % 128, tokens=8), wanted)
    assert "3 x LayerNorm -> layer_norm" in str(done)


def test_undoing_leaves_nothing_behind(llama):
    import transformers.models.llama.modeling_llama as family

    function = family.apply_rotary_pos_emb
    other = small_llama()
    done = use(llama)
    again = use(other)
    assert family.apply_rotary_pos_emb is not function
    with opmux.report() as calls:
        done.undo()
        generate(llama, prompt(), tokens=2)
    assert len(calls) == 0
    with opmux.expect(*OPERATORS):
        generate(other, prompt(), tokens=2)
    again.undo()
    assert family.apply_rotary_pos_emb is function
    assert llama.config._attn_implementation == "sdpa"
    assert not [m for m in llama.modules() if "forward" in m.__dict__]


def test_the_attention_alone_is_an_implementation_of_transformers(llama):
    wanted = generate(llama, prompt(), tokens=8)
    llama.set_attn_implementation("opmux")
    with opmux.expect("attention/simd.*", "attention/onednn.*"):
        assert torch.equal(generate(llama, prompt(), tokens=8), wanted)
    llama.set_attn_implementation("sdpa")


@pytest.mark.truth
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, {}),
        ({"scaling": 0.7}, {"scale": 0.7}),
        ({"softcap": 2.0}, {"softcap": 2.0}),
        ({"s_aux": torch.ones(2)}, {"sink": torch.ones(2)}),
        ({"is_causal": False}, {"causal": False}),
    ],
)
def test_each_argument_of_the_attention_counts(given, meant):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 5, 16)
    with opmux.expect("attention/*"):
        found, _ = opmux.transformers.attention(torch.nn.Module(), q, k, v, None, **given)
    wanted = formulas.attention(
        *(t.transpose(1, 2) for t in (q, k, v)), **{"causal": True, **meant}
    )
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.truth
def test_dropout_is_left_to_torch_and_refused_with_a_sink():
    q, k, v = torch.randn(3, 1, 2, 5, 16)
    with opmux.report() as calls:
        opmux.transformers.attention(torch.nn.Module(), q, k, v, None, dropout=0.5)
        with pytest.raises(opmux.InvalidArgument, match="sink") as caught:
            opmux.transformers.attention(
                torch.nn.Module(), q, k, v, None, dropout=0.5, s_aux=torch.ones(2)
            )
    assert len(calls) == 0 and caught.value.reason == "python.option"


def test_a_call_that_would_train_is_refused_with_advice(llama):
    with use(llama), pytest.raises(opmux.InvalidArgument, match=r"no_grad\(\)") as raised:
        llama(prompt())
    assert raised.value.reason == "python.requires_grad"


def test_what_is_asked_for_is_checked(llama):
    with pytest.raises(ValueError, match="'norms' is not one of"):
        use(llama, only=("norms",))


@pytest.mark.full
@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_compiled_without_a_break_it_gives_the_same_tokens(llama, mode):
    wanted = generate(llama, prompt())
    torch.compiler.reset()
    forward = llama.forward
    cache = {"cache_implementation": "static", "disable_compile": True} if mode == "static" else {}
    with use(llama), torch.no_grad():
        llama.forward = torch.compile(forward, fullgraph=True, dynamic=True)
        try:
            with opmux.expect(*OPERATORS) as calls:
                assert torch.equal(generate(llama, prompt(), **cache), wanted)
        finally:
            del llama.forward
    assert by_operator(calls)["attention"] == 4 * 64
