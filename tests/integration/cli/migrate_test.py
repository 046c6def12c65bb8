#!/usr/bin/env python3
"""Runs `opmux migrate` on the configuration examples of the systems that opmux learned from.

usage: migrate_test.py OPMUX SCHEMAS CASE

Every setting of an example must be in the answer once or more, mapped or named as having no equal, and the
policy must pass `opmux check`. Where a policy changes a choice, `opmux explain` must show the new choice.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
EXAMPLES = HERE / "migrations"
PLACES = ("policy", "environment", "code", "none", "unknown")
# Settings of each example without an equal, unknown ones, and the variables that replace others.
NO_EQUAL = {
    "vllm_fl_platform.yaml": {"op_backends.grouped_topk", "flagos_blacklist[copy_]",
                              "flagos_blacklist[nonzero]", "oot_blacklist", "action",
                              "io_dump.modules"},
    "vllm_fl.env": {"VLLM_FL_OP_FAST_PATH", "VLLM_FL_FLAGOS_BLACKLIST[index]",
                    "VLLM_FL_IO_DUMP_RANK", "VLLM_FL_REFERENCE_MODE", "FLAGGEMS_ENABLE_OPLIST_PATH",
                    "FLAGCX_PATH", "ADAPTIVE_LEARNING"},
    "layerzero_policy.yaml": {"locks[2]", "deny[2]"},
    "layerzero_config.yaml": {"defaults.fallback_policy"},
    "layerzero_hot_reload.yaml": {
        "dispatch.enable_cache", "dispatch.cache_size", "dispatch.cache_ttl_seconds",
        "dispatch.max_fallback_attempts", "dispatch.fallback_timeout_ms",
        "dispatch.watch_interval_seconds", "dispatch.sync_after_execution", "dispatch.record_timing"},
    "layerzero.env": {"LAYERZERO_JIT_CACHE_DIR", "LAYERZERO_WARMUP_TIMEOUT_MS"},
    "fla.env": {"FLA_INTRACARD_MAX_SPLITS", "FLA_CONV_BACKEND"},
    "flagtree.env": {"FLAGTREE_BACKEND"},
}
UNKNOWN = {"vllm_fl.env": {"VLLM_FL_PREFFER"}}
VARIABLES = {
    "vllm_fl_platform.yaml": {"OPMUX_RECORD": "inputs:./io_dump",
                              "OPMUX_DUMP": "rms_norm:layer.0,layer.1,layer.2,layer.3:5-15"},
    "vllm_fl.env": {"OPMUX_PYTHON_PLUGINS": "my_custom_backend", "OPMUX_LOG": "debug",
                    "OPMUX_PLATFORM": "ascend", "OPMUX_RECORD": "inputs:/tmp/dump",
                    "OPMUX_DUMP": "rms_norm::"},
    "layerzero_hot_reload.yaml": {"OPMUX_MODE": "hot_reload",
                                  "OPMUX_CONFIG": "/etc/layerzero/dispatch.yaml"},
    "fla.env": {"OPMUX_DISABLE": "1", "OPMUX_BACKEND_FLASH_KDA": "1", "OPMUX_BACKEND_FLASH_QLA": "1",
                "OPMUX_BACKEND_GLUON": "1"},
}
X = "x=f32[2,8]"
NORM = ["rms_norm", X]
# Calls, and the implementation that the migrated policy chooses for them.
CHOICES = {
    "vllm_fl_platform.yaml": [(NORM, "rms_norm/reference.scalar")],
    "vllm_fl.env": [(["silu_and_mul", X], "silu_and_mul/reference.scalar")],
    "layerzero_policy.yaml": [(NORM, "rms_norm/reference.scalar")],
    "layerzero_config.yaml": [(["layer_norm", X], "layer_norm/reference.scalar")],
    "layerzero_hot_reload.yaml": [(NORM, "rms_norm/reference.scalar")],
    "layerzero.env": [(NORM, "rms_norm/reference.scalar")],
}
# Pieces of the policies, by the settings that they come from.
PIECES = {
    "vllm_fl_platform.yaml": ['prefer: ["default"]', 'allow: ["default", "reference", "vendor:cuda"]',
                              'deny: ["vendor:vendor_a"]', 'deny: ["rms_norm/flaggems.*"]',
                              'op: "paged_attention", order: ["default", "vendor", "reference"]',
                              'op: "rms_norm", order: ["reference", "vendor", "default"]'],
    "vllm_fl.env": ["strict: true", 'op: "rms_norm", order: ["vendor", "reference"]',
                    'prefer: ["attention/flaggems.*"]'],
    "layerzero_policy.yaml": ['op: "rms_norm", require: ["reference"]',
                              'when: "causal && D <= 128"', 'prefer: ["attention/flash_attn_v2.*"]',
                              'when: "T > 8192", deny: ["*/acme.*", "*/acme_*.*"]',
                              'deny: ["*/xformers.*"]',
                              'when: "dtype(q) == \\"f32\\"", boost: [{impl: "attention/acme.*", '
                              'multiply: 2.0}]',
                              'when: "!(dtype(q) in [\\"f32\\", \\"f64\\"])"'],
    "layerzero_config.yaml": ['when: "causal && D in [64, 128] && S >= 1024 && HQ == HKV", rank: 100',
                              'prefer: ["attention/flash_attn_v3.*", "attention/flash_attn_v2.*", '
                              '"reference"]', "rank: 40", "!capturing",
                              'allow: ["*/flash_attn.*", "*/flash_attn_*.*", "reference"]'],
    "layerzero_hot_reload.yaml": ['breaker: {consecutive_failures: 3, open_for: "30000ms"}',
                                  'transforms: ["contiguous"]', "strict: false"],
    "layerzero.env": ['boost: [{impl: "attention/flash_attn_v2.*", add: 20.0}]'],
    "fla.env": ['deny: ["*/tilelang.*"]', 'deny: ["*/intracard_cp.*"]'],
}


def run(opmux, *arguments, **variables):
    env = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": "/dev/null", **variables}
    for name in ("LLVM_PROFILE_FILE", "GCOV_PREFIX", "ASAN_OPTIONS", "TSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    return subprocess.run([opmux, *arguments], capture_output=True, text=True, env=env, check=False)


def settings_in(path):
    """The settings of an example as its text has them, read without the code under test."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if path.suffix == ".env":
        return [line.removeprefix("export ").partition("=")[0] for line in lines]
    if path.name == "fla_backend.txt":
        return [match[1] for line in lines if (match := re.match(r"    (\w+) = ", line))]
    if path.name == "flagtree_spec.txt":
        return [f"__all__[{i}]" for i in range(sum('"' in line for line in lines))]
    if path.name == "mllm_descriptor.txt":
        return [match[1] for line in lines if (match := re.match(r"      \.(\w+) =", line))]
    return yaml_settings(lines)


# Keys whose values are maps of settings, and keys whose values are lists of rules.
MAPS = ("op_backends", "io_dump", "defaults", "kernel_locks", "fallback_chains", "dispatch", "kernels")
RULES = ("locks", "deny", "boosts", "dispatch_rules", "kernel_denies")


def yaml_settings(lines):
    found, top, items = [], "", 0
    for line in lines:
        if not line.startswith(" "):
            top, _, value = line.partition(":")
            items = 0
            if top == "kernel_denies":
                found += [f"{top}[{i}]" for i in range(value.count(",") + 1)]
            elif top not in MAPS and top not in RULES:
                found.append(top)
        elif top in MAPS and re.match(r"  [\w.*]+:", line):
            found.append(f"{top}.{line.strip().partition(':')[0]}")
        elif top in RULES and line.startswith("  - "):
            found.append(f"{top}[{items}]")
            items += 1
    return found


def migrates(opmux, schemas, name):
    """Every setting has a note, the policy applies, and it chooses what the example asks for."""
    path = EXAMPLES / name
    answer = run(opmux, "migrate", str(path), "--json")
    document = json.loads(answer.stdout)
    validate(schemas, document)
    assert document["refusal"] == "", document["refusal"]
    noted = document["settings"]
    assert {one["place"] for one in noted} <= set(PLACES)
    for setting in settings_in(path):
        names = [one for one in noted
                 if one["setting"] == setting or one["setting"].startswith(f"{setting}[")]
        assert names, f"{name}: {setting} is neither mapped nor named"
    for place, expected in (("none", NO_EQUAL), ("unknown", UNKNOWN)):
        found = {one["setting"] for one in noted if one["place"] == place}
        assert found == expected.get(name, set()), (place, found)
    assert all(one["text"] for one in noted), "a note without a text"
    assert document["environment"] == VARIABLES.get(name, {}), document["environment"]
    assert answer.returncode == (1 if name in NO_EQUAL or name in UNKNOWN else 0), answer
    for piece in PIECES.get(name, ()):
        assert piece in document["policy"], f"{piece} is not in\n{document['policy']}"
    with tempfile.TemporaryDirectory() as folder:
        policy = pathlib.Path(folder) / "policy.yaml"
        written = run(opmux, "migrate", str(path), "--out", str(policy))
        assert written.stdout == "", written.stdout
        text = policy.read_text(encoding="utf-8")
        assert document["policy"] in text
        assert all(f"#   {one['setting']} = " in text for one in noted)
        checked = run(opmux, "check", str(policy))
        assert checked.returncode == 0, checked.stdout
        for call, expected in CHOICES.get(name, ()):
            chosen(opmux, call, expected, policy)


def chosen(opmux, call, expected, policy):
    """The policy makes the choice: without it the call has another one, if the build has another."""
    def choice(**variables):
        told = json.loads(run(opmux, "explain", *call, "--json", **variables).stdout)["candidates"]
        return next(one["id"] for one in told if one["verdict"] == "chosen"), len(told)
    found, _ = choice(OPMUX_CONFIG=str(policy), OPMUX_MODE="config")
    plain, candidates = choice()
    assert found == expected, f"{call}: {found}, without the policy {plain}"
    assert plain != expected or candidates == 1, f"{call}: {expected} is chosen without it too"


def validate(schemas, document):
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        return
    schema = json.loads((pathlib.Path(schemas) / "migrate.json").read_text(encoding="utf-8"))
    judge = jsonschema.Draft202012Validator(schema)
    judge.validate(document)
    for key in document:
        rest = {name: value for name, value in document.items() if name != key}
        assert not judge.is_valid(rest), f"{key} may be missing"


def environment(opmux, _):
    """--env reads the variables of the process, after the files: they replace their settings."""
    platform = str(EXAMPLES / "vllm_fl_platform.yaml")
    told = run(opmux, "migrate", platform, "--env", "--json", VLLM_FL_PREFER="reference",
               LAYERZERO_DENY="acme_*", UNRELATED="1")
    document = json.loads(told.stdout)
    assert 'prefer: ["reference"]' in document["policy"], document["policy"]
    assert 'deny: ["*/acme.*", "*/acme_*.*"]' in document["policy"]
    names = [one["setting"] for one in document["settings"]]
    assert "VLLM_FL_PREFER" in names and "UNRELATED" not in names
    assert document["source"].endswith("2 environment variables"), document["source"]


def kernels(opmux, _):
    """--kernel names the token for a kernel of LayerZero."""
    told = run(opmux, "migrate", str(EXAMPLES / "layerzero.env"), "--json", "--kernel",
               "xformers_attention=attention/other.*")
    assert 'deny: ["attention/other.*"]' in json.loads(told.stdout)["policy"], told.stdout
    assert run(opmux, "migrate", "--env", "--kernel", "nothing").returncode == 2


def nothing_to_read(opmux, _):
    """A file without settings, a broken one and a missing one are errors, and name the reason."""
    for text, said in (("- 1\n", "neither a map"), ("a: [\n", "not valid YAML"),
                       ("PATH=/bin\n", "sets no variable")):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "settings"
            path.write_text(text, encoding="utf-8")
            told = run(opmux, "migrate", str(path))
            assert told.returncode == 2 and said in told.stderr, told
    assert run(opmux, "migrate", "/nowhere").returncode == 2
    assert run(opmux, "migrate").returncode == 2


def main():
    opmux, schemas, case = sys.argv[1:]
    if (EXAMPLES / case).exists():
        migrates(opmux, schemas, case)
    else:
        {"environment": environment, "kernels": kernels,
         "nothing_to_read": nothing_to_read}[case](opmux, schemas)


if __name__ == "__main__":
    main()
