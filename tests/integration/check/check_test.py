#!/usr/bin/env python3
"""`opmux plugin check` on plugins with a single defect each.

usage: check_test.py OPMUX SCHEMA FOLDER CASE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ID = "silu_and_mul/checked.v1"
# Plugin: exit code, result of its implementation, reason code of the result, finding.
VERDICTS = {
    "right": (0, "passed", "", ""),
    "has_high_priority": (0, "passed", "", ""),
    "writes_out_of_bounds": (1, "failed", "", "out_of_bounds"),
    "returns_nan": (1, "failed", "", "value"),
    "is_nondeterministic": (1, "failed", "", "nondeterministic"),
    "hangs": (1, "failed", "hang", ""),
    "aborts": (1, "failed", "crash", ""),
    "exits": (1, "failed", "exit", ""),
    "is_not_available": (1, "skipped", "not_available", ""),
}


class Checked:
    """The output of the command about one plugin."""

    def __init__(self, opmux, folder, name, *more):
        env = {key: value for key, value in os.environ.items() if not key.startswith("OPMUX_")}
        with tempfile.TemporaryDirectory() as empty:
            env["TMPDIR"] = env["XDG_STATE_HOME"] = empty
            xml_file = pathlib.Path(empty, "report.xml")
            before = time.monotonic()
            done = subprocess.run(
                [opmux, "plugin", "check", str(folder / f"{name}.so"), "--json", "--cases", "60",
                 "--timeout", "2" if name == "hangs" else "60", "--junit", str(xml_file), *more],
                capture_output=True, text=True, env=env, check=False)
            self.seconds = time.monotonic() - before
            self.code, self.said, self.errors = done.returncode, done.stdout, done.stderr
            assert done.stdout, done.stderr
            self.json = json.loads(done.stdout)
            self.junit = xml.etree.ElementTree.parse(xml_file).getroot()
            left = [path.name for path in pathlib.Path(empty).iterdir()]
            assert not [name for name in left if name.startswith("opmux-check")], left

    def implementation(self):
        one, = self.json["implementations"]
        return one

    def step(self, name):
        step, = [step for step in self.json["steps"] if step["name"] == name]
        return step


def verdict(opmux, folder, name, validate):
    checked = Checked(opmux, folder, name)
    validate(checked.json)
    code, result, why, finding = VERDICTS[name]
    one = checked.implementation()
    assert (checked.code, one["result"], one["code"]) == (code, result, why), checked.said
    assert one["id"] == ID and checked.json["passed"] == (code == 0), checked.said
    assert [f["kind"] for f in one["findings"]] == ([finding] if finding else []), checked.said
    case, = checked.junit.findall(f".//testcase[@name='{ID}']")
    tags = [child.tag for child in case]
    assert ("failure" in tags) == (result == "failed"), tags
    assert ("skipped" in tags) == (result == "skipped"), tags
    if finding:
        assert case.find("failure").get("type") == finding
    assert checked.seconds < 20, checked.seconds


def says_whether_it_would_be_chosen(opmux, folder, _):
    first = Checked(opmux, folder, "has_high_priority").implementation()
    assert first["chosen"] == first["cases"] and not first["never_chosen"], first
    last = Checked(opmux, folder, "right").implementation()
    if not last["chosen_instead"].startswith("silu_and_mul/simd."):
        print("skipped: no implementation has a higher priority than a vendor here")
        sys.exit(77)
    assert last["never_chosen"] and last["chosen"] == 0, last
    text = subprocess.run([opmux, "plugin", "check", str(folder / "right.so"), "--cases", "60"],
                          capture_output=True, text=True, check=True).stdout
    assert "the built-in policy would never choose it on this machine" in text, text


def a_crash_while_it_is_loaded_is_a_verdict(opmux, folder, validate):
    checked = Checked(opmux, folder, "crashes_when_loaded")
    validate(checked.json)
    assert checked.code == 1 and not checked.json["implementations"], checked.said
    failed = [step for step in checked.json["steps"] if step["result"] == "failed"]
    assert failed and "SIGSEGV" in "".join(step["text"] for step in failed), checked.said


def one_bad_backend_fails_it_and_the_other_is_verified(opmux, folder, validate):
    checked = Checked(opmux, folder, "has_a_bad_neighbour")
    validate(checked.json)
    assert checked.code == 1 and checked.implementation()["result"] == "passed", checked.said
    load = checked.step("load")
    assert load["result"] == "failed" and load["code"] == "plugin.kind", checked.said


def an_instance_that_create_does_not_make_is_found(opmux, folder, validate):
    checked = Checked(opmux, folder, "makes_no_instance")
    validate(checked.json)
    assert checked.code == 1 and checked.step("load")["result"] == "passed", checked.said
    found = checked.implementation()
    assert found["result"] == "failed", checked.said
    assert "create() returned no instance" in found["findings"][0]["detail"], checked.said


def refuses_wrong_use(opmux, folder, _):
    for words in (["nothing.so"], [str(folder / "right.so"), "--impl", "softmax/checked.v1"],
                  [str(folder / "right.so"), "--timeout", "0"], []):
        done = subprocess.run([opmux, "plugin", "check", *words], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2, (words, done.stdout, done.stderr)


def main():
    opmux, schema, folder, case = sys.argv[1:]
    try:
        import jsonschema
    except ImportError:
        print("skipped: no jsonschema in this Python")
        sys.exit(77)
    text = pathlib.Path(schema).read_text(encoding="utf-8")
    judge = jsonschema.Draft202012Validator(json.loads(text))
    if case in VERDICTS:
        verdict(opmux, pathlib.Path(folder), case, judge.validate)
    else:
        globals()[case](opmux, pathlib.Path(folder), judge.validate)


if __name__ == "__main__":
    main()
