#!/usr/bin/env python3
"""Checks the JSON of the command against its schemas.

usage: json_test.py OPMUX SCHEMAS CASE
"""
import json
import os
import pathlib
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: no jsonschema in this Python")
    sys.exit(77)

POLICIES = pathlib.Path(__file__).parent / "policies"
HEALTH = pathlib.Path(__file__).parent / "health" / "degraded.json"
BF16 = ["x=bf16[32,4096]", "weight=bf16[4096]"]
# Name: schema, command line, exit code.
CASES = {
    "list": ("list", ["list"], 0),
    "list_of_one": ("list", ["list", "rms_norm"], 0),
    "explain": ("explain", ["explain", "rms_norm", *BF16], 0),
    "explain_refusals": ("explain", ["explain", "rms_norm", *BF16, "--require", "reference"], 0),
    "explain_nothing_left": ("explain", ["explain", "softmax", "x=f32[2,3]@cuda:0"], 1),
    "verify": ("verify", ["verify", "softmax", "rms_norm", "--cases", "4"], 0),
    "health": ("health", ["health"], 0),
    "health_of_a_service": ("health", ["health", str(HEALTH)], 1),
    "process": ("process_state", ["list", "--page", "pages/worker.page"], 0),
    "config": ("config", ["config", "show"], 0),
    "diff": ("diff", ["diff", "locks/from.lock", "locks/to.lock"], 1),
    "lock": ("lock", ["lock", "softmax x=f32[2,3]", "rms_norm x=f32[2,3]"], 0),
    "lock_check": ("lock", ["lock", "--check", "locks/from.lock"], 1),
    "replay": ("replay", ["replay", "replays/tail.opmux-replay", "--impl",
                          "rms_norm/reference.scalar"], 0),
    "replay_cannot": ("replay", ["replay", "replays/tail.opmux-replay"], 2),
    "check": ("check", ["check", str(POLICIES / "conflicts.yaml")], 0),
    "check_refusal": ("check", ["check", str(POLICIES / "misspelt.yaml")], 1),
}


def ask(opmux, arguments, variables=None):
    env = {"PATH": os.environ["PATH"], **(variables or {})}
    for name in ("LLVM_PROFILE_FILE", "GCOV_PREFIX", "ASAN_OPTIONS", "TSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    run = subprocess.run([opmux, *arguments, "--json"], capture_output=True, text=True, env=env,
                         check=False)
    return run.returncode, json.loads(run.stdout)


def validator(schemas, name):
    schema = json.loads((pathlib.Path(schemas) / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check_case(opmux, schemas, case):
    name, arguments, code = CASES[case]
    found, document = ask(opmux, arguments)
    assert found == code, f"exit {found}, not {code}"
    validator(schemas, name).validate(document)
    return document


def schemas_refuse_what_is_missing(opmux, schemas):
    """Schemas must refuse wrong documents; one that accepts anything would pass every test above."""
    for case in CASES:
        document = check_case(opmux, schemas, case)
        judge = validator(schemas, CASES[case][0])
        for key in document:
            rest = {name: value for name, value in document.items() if name != key}
            assert not judge.is_valid(rest), f"{case}: {key} may be missing"
        assert not judge.is_valid([]), case


def every_operator_folder_is_listed(opmux, _):
    root = pathlib.Path(__file__).resolve().parents[3]
    folders = {path.stem for path in root.glob("operators/*/*.schema")}
    _, listed = ask(opmux, ["list"])
    assert {op["name"] for op in listed["operators"]} == folders and folders
    for op in listed["operators"]:
        ids = [i["id"] for i in op["implementations"]]
        assert f"{op['name']}/reference.scalar" in ids, ids


def simd_is_chosen_where_it_is_available(opmux, _):
    _, listed = ask(opmux, ["list", "rms_norm"])
    simd = [i for i in listed["operators"][0]["implementations"]
            if i["backend"] == "simd" and i["available"]]
    if not simd:
        print("skipped: no simd variant is available here")
        sys.exit(77)
    best = max(simd, key=lambda i: i["priority"])["id"]
    _, explained = ask(opmux, ["explain", "rms_norm", *BF16])
    assert explained["chosen"] == best, f"{explained['chosen']} is chosen, not {best}"
    accepted = [c["id"] for c in explained["candidates"] if c["verdict"] != "refused"]
    assert accepted[-1] == "rms_norm/reference.scalar", accepted


def hints_are_listed_and_explained(opmux, schemas):
    _, listed = ask(opmux, ["list", "linear"])
    validator(schemas, "list").validate(listed)
    hints = {i["id"]: i["hints"] for i in listed["operators"][0]["implementations"]
             if i["backend"] == "simd" and i["id"].endswith((".avx512", ".avx2", ".sse4"))}
    if not hints:
        print("skipped: the simd backend is not built")
        sys.exit(77)
    for rows in (4, 5):
        _, explained = ask(opmux, ["explain", "linear", f"x=f32[{rows},64]", "weight=f32[16,64]"])
        validator(schemas, "explain").validate(explained)
        for candidate in explained["candidates"]:
            expected = hints.get(candidate["id"], [None])[0] if rows == 4 else None
            if candidate["id"] in hints:
                assert candidate["hint"] == expected, candidate
            if expected and candidate["verdict"] != "refused":
                assert candidate["score"] == expected["priority"] > candidate["priority"], candidate


def main():
    opmux, schemas, case = sys.argv[1:]
    if case in CASES:
        check_case(opmux, schemas, case)
    else:
        globals()[case](opmux, schemas)


if __name__ == "__main__":
    main()
