"""vLLM engines for tests. Each runs in separate processes, as in normal use."""

import json

import engine_run
import pytest
from engine_process import Answer, run_script


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A Llama of four layers with random weights."""
    folder = tmp_path_factory.mktemp("model")
    engine_run.make_model(folder)
    return folder


@pytest.fixture(scope="session")
def mixture(tmp_path_factory):
    """A Qwen3 of two layers with eight experts, two of them for each token."""
    folder = tmp_path_factory.mktemp("mixture")
    engine_run.make_model(
        folder, family="Qwen3Moe", num_hidden_layers=2, head_dim=32, moe_intermediate_size=128,
        num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def engine(model, tmp_path_factory):
    """Runs an engine: engine(dtype, tokens, ...) -> Answer."""
    known = {}

    def run(dtype, tokens, *, plain=False, eager=True, opmux=None, model=model, **environment):
        options = {"model": str(model), "dtype": dtype, "enforce_eager": eager}
        if opmux is not None:
            options["additional_config"] = {"opmux": opmux}
        request = json.dumps({"engine": options, "tokens": tokens})
        if plain:
            environment["OPMUX_DISABLE"] = "1"
        key = request, *environment.items()
        if key not in known:
            known[key] = start(tmp_path_factory.mktemp("run"), request, environment)
        return known[key]

    return run


def start(folder, request, more):
    """Starts one engine with additional environment variables."""
    return Answer(**run_script(engine_run, folder, request, more))
