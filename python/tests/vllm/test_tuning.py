"""An engine whose calls are measured while it lives, and that uses the rows without a restart."""

import json
import re

import pytest
import tune_run
from engine_process import run_script

BUDGET = 20


@pytest.mark.full
def test_a_worker_is_tuned_from_outside_and_uses_the_rows(model, tmp_path):
    options = {"model": str(model), "dtype": "float32", "enforce_eager": True}
    request = json.dumps({"engine": options, "tokens": 32, "budget": BUDGET})
    found = run_script(tune_run, tmp_path, request, {})
    assert found["code"] == 0, found["said"]
    # The race that is running at the end of the budget, and the start of the command.
    assert found["seconds"] < BUDGET + 15, found["said"]
    assert {"linear", "paged_attention", "rms_norm"} <= {op for op, _, _ in found["cells"]}
    assert re.search(r"^linear f32,f32,f32 K=\d+ N=\d+ threads=\d+ eager$", found["said"], re.M)
    assert re.search(
        r"^  rows=\d+\.\.\d+ +vllm\.native.* (than|against) \w+", found["said"], re.M
    ), found
    (bundle,) = found["rows"]
    assert bundle["path"].endswith("local.bundle") and bundle["rows"] > 0
    assert bundle["used"] > 0, "rows of the operators that the model uses hold here"
    assert found["state"]["not_ok"] == {}
    assert len(found["after"]) == len(found["before"])
