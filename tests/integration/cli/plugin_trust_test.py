#!/usr/bin/env python3
"""Signs, verifies and lists a plugin; errors are reported by their codes.

usage: plugin_trust_test.py OPMUX PLUGIN SCHEMAS
"""
import hashlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

import jsonschema

OPMUX, PLUGIN, SCHEMAS = sys.argv[1:]


def run(*words, code=0, limits=None, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    ran = subprocess.run([OPMUX, "plugin", *words], capture_output=True, text=True, preexec_fn=limits,
                         restore_signals=False, env=env | environment, cwd=FOLDER)
    assert code is None or ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def listed(*words, limits=None, **environment):
    """The list entry of the plugin of this test: code, signer and location."""
    text = run("list", "--no-probe", "--json", *words, code=None, limits=limits, **environment)
    document = json.loads(text)
    jsonschema.validate(document, json.loads(pathlib.Path(SCHEMAS, "plugins.json").read_text()))
    found = [p for p in document["plugins"] if str(FOLDER) in p["path"]]
    assert len(found) == 1, text
    return found[0]["code"], found[0]["signer"], found[0]["found_in"]


def verify_says(word):
    assert word in run("verify", "good.so", "--keyring", "keys", code=1 if word.startswith("trust") else 0)
    signed = listed("--folder", str(FOLDER), "--trust", "signed", "--keyring", str(FOLDER / "keys"))
    assert signed == (("", word, "options") if not word.startswith("trust") else (word, "", "options")), signed


def main():
    shutil.copy(PLUGIN, FOLDER / "good.so")
    os.chmod(FOLDER / "good.so", 0o644)
    (FOLDER / "keys").mkdir()
    run("keygen", "acme", "--folder", "keys")
    run("keygen", "acme", "--folder", "keys", code=2)
    assert (FOLDER / "keys/acme.key").stat().st_mode & 0o777 == 0o600
    verify_says("trust.unsigned")
    run("sign", "good.so", "--key", "keys/acme.key")
    verify_says("acme")
    with open(FOLDER / "good.so", "ab") as file:
        file.write(b"\0")
    verify_says("trust.tampered")
    run("keygen", "stranger")
    run("sign", "good.so", "--key", "stranger.key")
    verify_says("trust.key")
    run("keygen", "old", "--folder", "keys", "--expires", "2001-01-01")
    run("sign", "good.so", "--key", "keys/old.key")
    verify_says("trust.key_expired")
    assert listed(OPMUX_PLUGIN_PATH=str(FOLDER)) == ("", "", "OPMUX_PLUGIN_PATH")
    by_digest = ("--trust", "digest", "--folder", str(FOLDER))
    assert listed(*by_digest)[0] == "trust.digest"
    digest = hashlib.sha256((FOLDER / "good.so").read_bytes()).hexdigest()
    assert listed(*by_digest, "--digest", "0" * 64, "--digest", digest)[0] == ""
    sealing_fails()


def sealing_fails():
    """Sealed copies are files in memory, so that a limit of the size of files refuses them."""
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    assert listed("--folder", str(FOLDER), limits=small_files)[0] == ""
    assert listed("--folder", str(FOLDER), "--sealed")[0] == ""
    assert listed("--folder", str(FOLDER), "--sealed", limits=small_files)[0] == "plugin.sealed"


with tempfile.TemporaryDirectory() as name:
    FOLDER = pathlib.Path(name).resolve()
    main()
print("signed, verified and listed as it should be")
