"""Runs one vLLM engine and writes its results as JSON: engine_run.py REQUEST ANSWER."""

import json
import os
import pathlib
import sys
import time

PROMPTS = (
    "the sea", "a list of numbers: 1, 2, 3,", "def add(a, b):", "Once upon a time there was",
    "x", "Everything flows and", "0123456789 0123456789", "One row of weights and",
)  # fmt: skip
SETTLED = 1.5  # seconds without an update; a status file is written twice a second
SECONDS = 60  # much longer than any step takes


def make_model(folder, weights=True, family="Llama", **changes):
    """Writes a model, by default a small Llama, with random or no weights, and a byte tokenizer."""
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
    """The status file of a process once it no longer changes."""
    import opmux

    end, page = time.monotonic() + SECONDS, None
    while time.monotonic() < end:
        try:
            (now,) = opmux.process_state(pid, state_dir).runtimes
        except opmux.NotFound:  # the worker has made no call yet
            now = None
        if page is not None and now is not None and now.updates == page.updates:
            return now
        page = now
        time.sleep(SETTLED)
    raise AssertionError("the status file keeps changing")


def told_by(page):
    """The calls and choices in a status file."""
    found = [each for op in page.operators for each in op.implementations]
    return {
        "implementations": {each.id: each.calls for each in found if each.calls},
        "not_ok": {e.id: e.failed + e.declined for e in found if e.failed + e.declined},
        "chosen": sorted({choice.accepted[0] for choice in page.choices}),
        "policy": page.policy_digest,
    }


def state(llm):
    """The worker's report, and the calls in its status file; None if opmux is disabled."""
    if os.environ.get("OPMUX_DISABLE"):
        return None
    said = llm.collective_rpc("opmux_state")[0]
    return {**said, **told_by(settled_page(said["pid"]))}


def run(request):
    """Returns the greedy tokens and log probabilities of every prompt, and the worker's state
    before and after."""
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
