"""Policies that name an operator which does not exist."""

import subprocess
import sys

import pytest

import opmux

pytestmark = pytest.mark.truth


def test_in_code_is_refused(runtime):
    with pytest.raises(opmux.InvalidArgument, match="did you mean 'rms_norm'"):
        runtime.set_policy(opmux.policy(per_op={"rmsnorm": ["vendor"]}))
    with pytest.raises(opmux.InvalidArgument, match="did you mean 'rms_norm'"):
        runtime.set_policy(opmux.policy(rules=[opmux.rule(op="rmsnorm", deny=["vendor"])]))
    with (
        pytest.raises(opmux.InvalidArgument, match="did you mean 'rms_norm'"),
        opmux.scope(per_op={"rmsnorm": ["vendor"]}, runtime=runtime),
    ):
        pass


def test_in_the_environment_is_logged_and_shown(caplog):
    runtime = opmux.create_runtime(environment=[("OPMUX_PER_OP", "rmsnorm=vendor|reference")])
    told = [r for r in caplog.records if r.opmux_code == "policy.op"]
    assert len(told) == 1 and "did you mean 'rms_norm'?" in told[0].message
    shown = next(s for s in runtime.settings() if s.key == "order.rmsnorm")
    assert "did you mean 'rms_norm'?" in shown.origin


def test_a_dispatchable_function_may_be_defined_later():
    program = """
import opmux
opmux.default_runtime()

@opmux.dispatchable
def scan(q):
    return "body"

@scan.implementation("acme.fast")
def fast(q):
    return "acme"

print(scan(1))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"OPMUX_PER_OP": "scan=reference|vendor", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "body\n" and done.stderr == "", done.stderr
