"""`vllm serve` while kernels fail on purpose."""

import os
import pathlib
import time

import engine_run
import pytest
from serving import Server, Watch

REQUESTS, TOKENS = 2000, 8
POLICY = "opmux: 1\nbreaker: {open_for: 1s, open_at_most: 2s}\n"
CHAOS = ("silu_and_mul/chaos.gate", "fused_add_rms_norm/chaos.norm")


def implementation(runtime, wanted):
    """One of those that a page has."""
    (found,) = [i for op in runtime.operators for i in op.implementations if i.id == wanted]
    return found


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    """With kernels that misbehave as soon as a file is there."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "policy.yaml").write_text(POLICY)
    here = str(pathlib.Path(__file__).parent)
    environment = {
        "OPMUX_CONFIG": str(folder / "policy.yaml"), "OPMUX_PYTHON_PLUGINS": "chaos_kernels",
        "PYTHONPATH": here, "CHAOS_FILE": str(folder / "chaos"),
    }  # fmt: skip
    with Server(model, folder, **environment) as serving:
        yield serving


def settled(server):
    """What the worker's page says when nothing is asked any more."""
    page = server.worker()
    while True:
        time.sleep(engine_run.SETTLED)
        later = server.worker()
        if later.updates == page.updates:
            return later
        page = later


@pytest.mark.full
def test_no_request_fails_while_kernels_do(server):
    prompts = [f"{engine_run.PROMPTS[i % 8]} {i % 40}" for i in range(REQUESTS)]
    quiet = {prompt: server.ask(prompt, TOKENS) for prompt in sorted(set(prompts))}
    assert all(len(tokens) == TOKENS for tokens in quiet.values())
    before = settled(server)
    assert all(implementation(before, one).failed == 0 for one in CHAOS)
    chaos = pathlib.Path(server.environment["CHAOS_FILE"])
    chaos.touch()
    with Watch(server) as watch:
        answers = server.ask_many(prompts, TOKENS)
        faults = chaos.read_text().split()
        os.remove(chaos)
        assert answers.count(None) == 0, server.said()
        other = [(p, a) for p, a in zip(prompts, answers, strict=True) if a != quiet[p]]
        assert len(other) <= REQUESTS * 0.005
        # Batches differ, and with them the order of sums; alone the tokens are the same.
        server.ask_many(prompts[:200], TOKENS)  # so that what rests is tried again
    after = settled(server)
    assert all(server.ask(prompt, TOKENS) == quiet[prompt] for prompt, _ in other)
    assert {"fail", "decline", "stall", "memory"} <= set(faults)
    failed = {one: implementation(after, one) for one in CHAOS}
    assert sum(each.failed for each in failed.values()) >= faults.count("fail")
    assert sum(each.declined for each in failed.values()) >= faults.count("decline")
    stood_in = sum(i.stood_in for op in after.operators for i in op.implementations)
    assert stood_in >= faults.count("fail") + faults.count("decline")
    assert any(one in CHAOS and state == "open" for one, state in watch.seen)
    assert not after.breakers  # all were tried again, and trusted
    print(f"{len(faults)} faults, {len(other)} of {REQUESTS} answers differ from the quiet run")
