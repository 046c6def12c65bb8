"""`python -m opmux.transformers`: times a small Llama with and without opmux, eager and compiled.

`--check` exits with 1 if the tokens differ or if opmux is slower in eager mode.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from . import use
from ._use import ALL, KINDS

TOKENS = 64


def small_llama(dtype: torch.dtype = torch.float32) -> Any:
    """A Llama of four layers with random weights."""
    torch.manual_seed(0)
    config: Any = LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=1024,
    )
    made: Any = LlamaForCausalLM
    return made._from_config(config, attn_implementation="sdpa", dtype=dtype).eval()


def prompt(batch: int = 1, length: int = 32) -> torch.Tensor:
    """Random token ids."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(3, 500, (batch, length), generator=generator)


def generate(model: Any, ids: torch.Tensor, tokens: int = TOKENS, **options: Any) -> torch.Tensor:
    """Generates tokens after a prompt, greedily."""
    made: torch.Tensor = model.generate(
        ids, max_new_tokens=tokens, do_sample=False, eos_token_id=None, pad_token_id=0, **options
    )
    return made


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(
    model: Any, run: Callable[[], object], rounds: int, only: tuple[str, ...]
) -> tuple[float, float]:
    """Returns the shortest time without and with opmux over several alternating rounds."""
    plain, ours = [], []
    for _ in range(rounds):
        run()
        plain += [_seconds(run), _seconds(run)]
        with use(model, only=only):
            run()
            ours += [_seconds(run), _seconds(run)]
    return min(plain), min(ours)


def _show(what: str, plain: float, ours: float) -> None:
    ratio = plain / ours
    print(f"{what:28} plain {plain * 1e3:8.2f} ms   opmux {ours * 1e3:8.2f} ms   {ratio:5.2f} x")


def eager(model: Any, rounds: int) -> list[float]:
    """Times prefill and decoding in eager mode; returns the speed-ups of opmux."""
    long, ids = prompt(1, 256), prompt()
    found = []
    with torch.inference_mode():
        runs: dict[str, Callable[[], object]] = {
            "prefill, 256 tokens, eager": lambda: model(long),
            f"decode, {TOKENS} tokens, eager": lambda: generate(model, ids),
        }
        for what, run in runs.items():
            run()
            plain, ours = compare(model, run, rounds, KINDS)
            _show(what, plain, ours)
            found.append(plain / ours)
            _show("  with products", *compare(model, run, rounds, ALL))
    return found


def compiled(model: Any, rounds: int) -> None:
    """Times decoding with compiled code."""
    ids, times = prompt(), []
    forward = model.forward
    for with_opmux in (False, True):
        torch.compiler.reset()
        done = use(model) if with_opmux else None
        model.forward = torch.compile(forward, fullgraph=True, dynamic=True)
        with torch.inference_mode():
            generate(model, ids)
            times.append(min(_seconds(lambda: generate(model, ids)) for _ in range(rounds)))
        del model.forward
        if done is not None:
            done.undo()
    _show(f"decode, {TOKENS} tokens, compiled", *times)


def main() -> int:
    """Prints the timings. Returns 1 if `--check` was passed and a check failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m opmux.transformers", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a check fails")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compile", action="store_true", help="skip compiled code")
    options = parser.parse_args()
    model = small_llama()
    with torch.inference_mode():
        wanted = generate(model, prompt())
        with use(model) as done:
            print(done)
            same = torch.equal(generate(model, prompt()), wanted)
    print(f"tokens {'equal' if same else 'DIFFER'}")
    ratios = eager(model, options.rounds)
    if not options.no_compile:
        compiled(model, options.rounds)
    fine = same and min(ratios) >= 1.0
    return 0 if fine or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
