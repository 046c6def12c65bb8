"""A policy file that changes while an engine generates."""

import json

import pytest
import reload_run
from engine_process import Answer, run_script

CHANGES, TOKENS = 50, 32


@pytest.mark.full
def test_all_processes_follow_a_policy_file_while_they_generate(model, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("opmux: 1\n")
    options = {"model": str(model), "dtype": "float32", "enforce_eager": True}
    request = json.dumps({"engine": options, "tokens": TOKENS, "changes": CHANGES})
    found = run_script(reload_run, tmp_path, request, {"OPMUX_CONFIG": str(policy)})
    assert found["problem"] == ""
    assert len(found["seconds"]) == CHANGES and max(found["seconds"]) < 1
    assert found["processes"] == 3  # the program, the engine, its worker
    quiet, *rounds = found["rounds"]
    assert rounds and all(len(one) == TOKENS for answer in rounds for one in answer)
    assert all(answer == quiet for answer in rounds)
    answer = Answer(quiet, [], found["before"], found["after"])
    assert answer.after["not_ok"] == {}
    assert answer.backends()["linear"] >= {"onednn", "simd"}
    assert "reference" not in set().union(*answer.backends().values())
    chosen = {each.partition(".")[0] for each in answer.after["chosen"]}
    assert "linear/onednn" in chosen and "linear/simd" not in chosen  # as in the last policy file
    print(f"{len(rounds)} rounds, followed after {max(found['seconds']):.2f} s at most")
