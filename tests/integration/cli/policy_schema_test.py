#!/usr/bin/env python3
"""Compares the published schema of policy files with the files that the command accepts.

usage: policy_schema_test.py OPMUX SCHEMA REFUSED

REFUSED is the folder of texts that are refused, with their reasons.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: no {missing.name} in this Python")
    sys.exit(77)

# Reasons that a JSON schema can check; the others need operators, dates or a parser.
STRUCTURAL = {"policy.unknown_key", "policy.type", "policy.version"}
# Well-formed dates and times that do not exist or are too long.
BEYOND = {"expires_on_no_day"}
ACCEPTED = """
opmux: 1
defaults: {strict: false, prefer: [vendor], allow: ["*/*"]}
names: lenient
breaker: {consecutive_failures: 5, failure_rate: 0.5, window: 100, min_calls: 20, open_for: 30s,
          open_at_most: 5m, permits: 3, successes: 2}
shadow: {every: 64, on_mismatch: report, share: 0.05, memory_mb: 8}
rules:
  - {name: a, op: rms_norm, when: H > 5, impl: rms_norm/simd.*, require: [reference, default],
     prefer: ["vendor:acme"], order: ["impl:rms_norm/reference.scalar", default],
     deny: ["*/opencl.*"], allow: [reference, default], boost: [{multiply: 2}, {impl: vendor, add: 1}],
     strict: true, breaker: {permits: 1}, rank: 7, reason: why, owner: who, expires: 2127-02-01,
     allow_none: true}
"""


class Core(yaml.SafeLoader):
    """Loads scalars as in JSON and YAML 1.2: no dates, and `yes` and `no` are strings."""


Core.yaml_implicit_resolvers = {}
for tag, pattern, first in (
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
        ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
        ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-+0123456789."),
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""])):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def check(opmux, text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        run = subprocess.run([opmux, "check", file.name, "--json"], capture_output=True, text=True,
                             check=False)
    return json.loads(run.stdout)


def keys_in(opmux, text):
    """The keys that the command lists in its error about an unknown key."""
    message = check(opmux, text)["message"]
    return set(re.search(r"; valid keys are (.*)", message).group(1).split(", "))


def check_keys(opmux, schema):
    rule, defs = "opmux: 1\nrules: [{%s}]", schema["$defs"]
    places = {
        "qqqqqqqqqq: 1\nopmux: 1": schema,
        "opmux: 1\ndefaults: {qqqqqqqqqq: 1}": schema["properties"]["defaults"],
        "opmux: 1\nshadow: {qqqqqqqqqq: 1}": schema["properties"]["shadow"],
        "opmux: 1\nbreaker: {qqqqqqqqqq: 1}": defs["breaker"],
        rule % "deny: [], qqqqqqqqqq: 1": defs["rule"],
        rule % "boost: [{qqqqqqqqqq: 1}]": defs["boost"],
    }
    for text, part in places.items():
        found, published = keys_in(opmux, text), set(part["properties"])
        assert found == published, f"{text}: {found ^ published} on one side only"


def main(opmux, schema_path, refused):
    schema = json.loads(pathlib.Path(schema_path).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    check_keys(opmux, schema)
    accepted = check(opmux, ACCEPTED)
    assert accepted["applies"], accepted
    judge.validate(yaml.load(ACCEPTED, Core))
    judged = 0
    for path in sorted(pathlib.Path(refused).glob("*.yaml")):
        reason = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()[0]
        if reason not in STRUCTURAL or path.stem in BEYOND:
            continue
        document = yaml.load(path.read_text(encoding="utf-8"), Core)
        assert not judge.is_valid(document), f"the schema accepts {path.name}"
        judged += 1
    print(f"schema: {judged} texts refused by both")
    return 0 if judged >= 15 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
