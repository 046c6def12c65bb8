#!/usr/bin/env python3
"""Options of the command, each with a result that is different without it.

usage: options_test.py OPMUX PLUGINS CASE

PLUGINS is the folder of the plugins of tests/integration/check.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPMUX, PLUGINS = sys.argv[1], pathlib.Path(sys.argv[2])
POLICIES = pathlib.Path(__file__).parent / "policies"
CHECKED = "silu_and_mul/checked.v1"
CALL = ["silu_and_mul", "x=f32[2,8]"]


def run(folder, *words, code=0, plugin=""):
    """The output of a command in an empty folder that may contain one plugin."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    if plugin:
        (folder / "plugins").mkdir(exist_ok=True)
        shutil.copy(PLUGINS / f"{plugin}.so", folder / "plugins")
        clean["OPMUX_PLUGIN_PATH"] = str(folder / "plugins")
    ran = subprocess.run([OPMUX, *words], capture_output=True, text=True, cwd=folder, check=False,
                         env=clean | {"XDG_STATE_HOME": str(folder)})
    assert ran.returncode == code, f"{words}: {ran}"
    return ran.stdout


def explain(folder, *words, code=0, plugin=""):
    """(the chosen implementation, {id: its reason code}) of a call."""
    said = json.loads(run(folder, "explain", *CALL, *words, "--json", code=code, plugin=plugin))
    return said["chosen"], {one["id"]: one["code"] for one in said["candidates"]}


def explain_chooses_as_the_options_say(folder):
    chosen, _ = explain(folder, "--prefer", "reference")
    assert chosen == "silu_and_mul/reference.scalar", chosen
    chosen, _ = explain(folder, "--require", "reference")
    assert chosen == "silu_and_mul/reference.scalar", chosen
    best, _ = explain(folder)
    chosen, reasons = explain(folder, "--deny", best)
    assert chosen != best and reasons[best] == "policy.denied", reasons
    policy = folder / "policy.yaml"
    policy.write_text("opmux: 1\nrules:\n  - {op: silu_and_mul, require: [reference]}\n", encoding="utf-8")
    chosen, _ = explain(folder, "--policy", str(policy))
    assert chosen == "silu_and_mul/reference.scalar", chosen


def explain_says_whether_the_call_is_strict(folder):
    for words, strict in (([], False), (["--strict"], True)):
        said = json.loads(run(folder, "explain", *CALL, *words, "--json"))
        assert said["strict"] is strict, said


def explain_decides_for_an_instance(folder):
    wanted = ["--prefer", CHECKED]
    chosen, reasons = explain(folder, *wanted, plugin="makes_no_instance")
    assert chosen != CHECKED and reasons[CHECKED] == "caps.instance", reasons
    chosen, _ = explain(folder, *wanted, "--instance", plugin="makes_no_instance")
    assert chosen == CHECKED, chosen


def explain_knows_the_facts_of_the_call(folder):
    policy = folder / "policy.yaml"
    for when, words in (("inference", ["--fact", "inference"]), ("rank == 1", ["--rank", "1"]),
                        ("tp_size == 8", ["--tp-size", "8"])):
        policy.write_text(f"opmux: 1\nrules:\n  - {{op: silu_and_mul, when: {when}, require: [reference]}}\n",
                          encoding="utf-8")
        chosen, _ = explain(folder, "--policy", str(policy))
        assert chosen != "silu_and_mul/reference.scalar", when
        chosen, _ = explain(folder, "--policy", str(policy), *words)
        assert chosen == "silu_and_mul/reference.scalar", when


def check_refuses_names_that_match_nothing_if_it_is_strict(folder):
    policy = str(POLICIES / "other_hosts.yaml")
    assert "would apply" in run(folder, "check", policy)
    refused = run(folder, "check", policy, "--strict", code=1)
    assert "no registered implementation matches 'rms_norm/zeta.*'" in refused, refused


def check_knows_the_implementations_of_another_machine(folder):
    machine, policy = folder / "machine.json", str(POLICIES / "other_hosts.yaml")
    listed = json.loads(run(folder, "list", "--json"))
    machine.write_text(json.dumps(listed), encoding="utf-8")
    refused = run(folder, "check", policy, "--machine", str(machine), code=1)
    assert "no registered implementation matches 'rms_norm/zeta.*'" in refused, refused
    norm, = [one for one in listed["operators"] if one["name"] == "rms_norm"]
    norm["implementations"].append(norm["implementations"][0] | {"id": "rms_norm/zeta.one"})
    machine.write_text(json.dumps(listed), encoding="utf-8")
    taken = run(folder, "check", policy, "--machine", str(machine))
    assert "-> rms_norm/zeta.one, by" in taken, taken


def lock_reads_the_calls_of_a_file(folder):
    calls = folder / "calls"
    calls.write_text("softmax x=f32[2,3]\nrms_norm x=f32[2,4]\n", encoding="utf-8")
    lines = run(folder, "lock", "--calls", str(calls)).splitlines()
    locked = [line.split()[1].partition("/")[0] for line in lines if line.startswith("lock ")]
    assert sorted(locked) == ["rms_norm", "softmax"], lines


def lock_writes_to_a_file_or_checks_one(folder):
    assert run(folder, "lock", "softmax x=f32[2,3]", "--output", "a.lock") == ""
    assert "lock softmax/" in (folder / "a.lock").read_text(encoding="utf-8")
    for words in (["--output", "b.lock"], ["--emit-header", "b.hpp"]):
        run(folder, "lock", "--check", "a.lock", *words, code=2)
    assert sorted(path.name for path in folder.glob("b.*")) == []


def verify(folder, *words, code=1):
    said = json.loads(run(folder, "verify", *words, "--json", code=code, plugin="returns_nan"))
    return said["operators"]


def verify_draws_calls_from_the_seed(folder):
    for seed in (9, 10):
        op, = verify(folder, "--backend", "checked", "--cases", "60", "--seed", str(seed))
        one, = op["implementations"]
        assert one["id"] == CHECKED and one["findings"][0]["seed"] == seed, one
    found = one["findings"][0]
    op, = verify(folder, "--backend", "checked", "--seed", "10", "--case", str(found["case"]))
    assert op["cases"] == 1 and op["implementations"][0]["findings"] == [found], op
    run(folder, "verify", "softmax", "--case", "1", "--cases", "5", code=2)


def verify_takes_all_operators(folder):
    listed = {one["name"] for one in json.loads(run(folder, "list", "--json"))["operators"]}
    verified = {one["name"] for one in verify(folder, "--all", "--cases", "1")}
    assert verified == listed and "softmax" in verified, verified ^ listed


def plugin_check_draws_calls_from_the_seed(folder):
    for seed in (9, 10):
        said = run(folder, "plugin", "check", str(PLUGINS / "returns_nan.so"), "--cases", "60", "--seed",
                   str(seed), "--json", code=1)
        one, = json.loads(said)["implementations"]
        assert one["findings"][0]["seed"] == seed, one


def plugin_list_tries_plugins_unless_it_is_told_not_to(folder):
    listed = ["plugin", "list", "--folder", str(folder / "plugins")]
    assert "1 implementations of checked" in run(folder, *listed, "--no-probe", plugin="right")
    assert not list(folder.rglob("verdicts")), sorted(folder.rglob("*"))
    run(folder, *listed, plugin="right")
    assert list(folder.rglob("verdicts")), sorted(folder.rglob("*"))


def plugin_new_writes_the_language_that_is_asked_for(folder):
    for flag, file in (("--c", "zeta.c"), ("--cpp", "zeta.cpp"), ("--python", "src/zeta/__init__.py")):
        run(folder, "plugin", "new", "zeta", flag, "--folder", flag[2:])
        assert (folder / flag[2:] / file).is_file(), sorted(folder.rglob("*"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        globals()[sys.argv[3]](pathlib.Path(folder))


if __name__ == "__main__":
    main()
