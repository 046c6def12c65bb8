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
    """The implementation with this id in a status file."""
    (found,) = [i for op in runtime.operators for i in op.implementations if i.id == wanted]
    return found


def chaotic_server(model, folder, policy, **more):
    """A server with kernels that misbehave while a file exists."""
    (folder / "policy.yaml").write_text(policy)
    environment = {
        "OPMUX_CONFIG": str(folder / "policy.yaml"), "OPMUX_PYTHON_PLUGINS": "chaos_kernels",
        "PYTHONPATH": str(pathlib.Path(__file__).parent), "CHAOS_FILE": str(folder / "chaos"),
    }  # fmt: skip
    return Server(model, folder, **environment, **more)


def settled(server):
    """The worker's status file once it no longer changes."""
    page = server.worker()
    while True:
        time.sleep(engine_run.SETTLED)
        later = server.worker()
        if later.updates == page.updates:
            return later
        page = later


@pytest.mark.full
def test_no_request_fails_while_kernels_do(model, tmp_path):
    with chaotic_server(model, tmp_path, POLICY) as server:
        serve_through_chaos(server)


def serve_through_chaos(server):
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
        # Some answers may differ because batches, and so the order of sums, differ.
        server.ask_many(prompts[:200], TOKENS)  # gives open breakers calls to probe with
    after = settled(server)
    assert all(server.ask(prompt, TOKENS) == quiet[prompt] for prompt, _ in other)
    assert {"fail", "decline", "stall", "memory"} <= set(faults)
    failed = {one: implementation(after, one) for one in CHAOS}
    assert sum(each.failed for each in failed.values()) >= faults.count("fail")
    assert sum(each.declined for each in failed.values()) >= faults.count("decline")
    stood_in = sum(i.stood_in for op in after.operators for i in op.implementations)
    assert stood_in >= faults.count("fail") + faults.count("decline")
    assert any(one in CHAOS and state == "open" for one, state in watch.seen)
    assert not after.breakers  # all were probed and closed again
    print(f"{len(faults)} faults, {len(other)} of {REQUESTS} answers differ from the quiet run")


@pytest.mark.full
def test_a_kernel_with_wrong_results_is_found_and_left_out(model, tmp_path):
    policy = "opmux: 1\nshadow: {every: 1, share: 0.5}\nbreaker: {open_for: 120s}\n"
    with chaotic_server(model, tmp_path, policy, CHAOS_GATE="corrupt") as server:
        quiet = {prompt: server.ask(prompt, TOKENS) for prompt in engine_run.PROMPTS}
        assert not server.worker().breakers
        (tmp_path / "chaos").touch()
        end = time.monotonic() + engine_run.SECONDS
        while not server.worker().breakers:
            assert None not in server.ask_many(engine_run.PROMPTS, TOKENS), server.said()
            assert time.monotonic() < end, "no breaker opened"
        for breaker in server.worker().breakers:
            assert (breaker.implementation, breaker.state) == (CHAOS[0], "open")
        answers = server.ask_many(engine_run.PROMPTS, TOKENS)  # may include new classes of calls
        while answers != list(quiet.values()):
            assert time.monotonic() < end, "results stay wrong"
            answers = server.ask_many(engine_run.PROMPTS, TOKENS)
        print({breaker.why for breaker in server.worker().breakers})


@pytest.mark.full
def test_a_kernel_that_ends_the_worker_is_left_out_by_the_next_one(model, tmp_path):
    more = {"CHAOS_GATE": "die", "OPMUX_CRASH_JOURNAL": "with_handler"}
    with chaotic_server(model, tmp_path, "opmux: 1\n", **more) as server:
        quiet = [server.ask(prompt, TOKENS) for prompt in engine_run.PROMPTS]
        (tmp_path / "chaos").touch()
        assert server.ask(engine_run.PROMPTS[0], TOKENS) is None
    with chaotic_server(model, tmp_path, "opmux: 1\n", **more) as server:
        assert [server.ask(prompt, TOKENS) for prompt in engine_run.PROMPTS] == quiet
        gate = implementation(settled(server), CHAOS[0])
        assert (gate.calls, gate.code) == (0, "health.quarantined")
        assert "SIGSEGV" in gate.reason
