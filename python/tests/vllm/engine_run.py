"""Runs one vLLM engine and writes what came out of it, as JSON: engine_run.py REQUEST ANSWER."""

import json
import os
import pathlib
import sys
import time

PROMPTS = (
    "the sea", "a list of numbers: 1, 2, 3,", "def add(a, b):", "Once upon a time there was",
    "x", "Everything flows and", "0123456789 0123456789", "One row of weights and",
)  # fmt: skip
SETTLED = 1.5  # seconds without news: a page is written twice a second
SECONDS = 60  # far above what any of it takes


def make_model(folder, weights=True, family="Llama", **changes):
    """A Llama, small unless told otherwise, of random weights or none, and a tokenizer of bytes."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    size = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 688,
            "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
            "max_position_embeddings": 512}  # fmt: skip
    make_config = getattr(transformers, f"{family}Config")
    config = make_config(**{**size, **changes}, bos_token_id=1, eos_token_id=2)
    config.architectures = [f"{family}ForCausalLM"]
    config.save_pretrained(folder)
    if weights:
        torch.manual_seed(0)
        model = getattr(transformers, config.architectures[0])(config)
        model.to(torch.bfloat16).save_pretrained(folder)
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for letter in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary[letter] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)


def settled_page(pid, state_dir=""):
    """The state page of a process that has nothing to do any more."""
    import opmux

    end, page = time.monotonic() + SECONDS, None
    while time.monotonic() < end:
        try:
            (now,) = opmux.process_state(pid, state_dir).runtimes
        except opmux.NotFound:  # the worker has called nothing yet
            now = None
        if page is not None and now is not None and now.updates == page.updates:
            return now
        page = now
        time.sleep(SETTLED)
    raise AssertionError("the page does not come to rest")


def told_by(page):
    """What a page says of calls and choices."""
    found = [each for op in page.operators for each in op.implementations]
    return {
        "implementations": {each.id: each.calls for each in found if each.calls},
        "not_ok": {e.id: e.failed + e.declined for e in found if e.failed + e.declined},
        "chosen": sorted({choice.accepted[0] for choice in page.choices}),
        "policy": page.policy_digest,
    }


def state(llm):
    """What the worker took over, by its own word, and what ran in it, by its state page; nothing
    where opmux is switched off."""
    if os.environ.get("OPMUX_DISABLE"):
        return None
    said = llm.collective_rpc("opmux_state")[0]
    return {**said, **told_by(settled_page(said["pid"]))}


def run(request):
    """Greedy tokens of every prompt, the worker's state before and after, and the first
    logarithms of probabilities."""
    from vllm import LLM, SamplingParams

    llm = LLM(seed=0, max_model_len=256, disable_log_stats=True, **request["engine"])
    prompts = list(PROMPTS[: request.get("prompts", len(PROMPTS))])
    sampling = SamplingParams(
        temperature=0, max_tokens=request["tokens"], ignore_eos=True, logprobs=1
    )
    before = state(llm)
    outputs = llm.generate(prompts, sampling, use_tqdm=False)
    best = [[next(iter(step.values())).logprob for step in o.outputs[0].logprobs] for o in outputs]
    return {
        "tokens": [list(o.outputs[0].token_ids) for o in outputs],
        "logprobs": best,
        "before": before,
        "after": state(llm),
    }


if __name__ == "__main__":
    answer = run(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    pathlib.Path(sys.argv[2]).write_text(json.dumps(answer))
