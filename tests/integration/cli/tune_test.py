#!/usr/bin/env python3
"""Files with tuning rows: merging those of two hosts into a bundle, and what happens to damaged ones.

usage: tune_test.py OPMUX
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

OPMUX = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent / "tuning"
ONE, OTHER = HERE / "one_host.txt", HERE / "other_host.txt"


def tune(*words, code=0):
    ran = subprocess.run([OPMUX, "tune", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == code, (words, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout + ran.stderr


def merges_hosts(folder):
    bundle = folder / "fleet.bundle"
    said = tune("merge", ONE, OTHER, "--output", bundle)
    assert said == f"{bundle}: 3 rows, 2 sections, 1 machine\n", said
    text = tune("export", bundle)
    assert "log=-0.8053" in text, "the mean of both hosts: " + text
    assert "unclear" in next(line for line in text.splitlines() if "rows=1..4" in line), text
    assert text.count("rounds=40") == 2 and "host=0000000000000000" in text, text
    # The text is another form of the same rows.
    again = folder / "again.txt"
    again.write_text(text)
    assert tune("diff", bundle, again) == "the rows are the same\n"
    copy = folder / "copy.bundle"
    tune("merge", again, "--output", copy)
    assert copy.read_bytes() == bundle.read_bytes()


def refuses_damaged_files(folder):
    bundle = folder / "whole.bundle"
    tune("merge", ONE, "--output", bundle)
    whole = bundle.read_bytes()
    for at in (20, 100, len(whole) - 3):
        damaged = folder / "damaged.bundle"
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
        said = tune("verify", damaged, code=2)
        assert said.startswith(f"opmux: {damaged}: ") and said.count("\n") == 1, said
    truncated = folder / "truncated.bundle"
    truncated.write_bytes(whole[:-1])
    assert "truncated" in tune("show", truncated, code=2)
    assert "line 2: " in tune("show", __file__, code=2)
    assert "absent.bundle" in tune("show", folder / "absent.bundle", code=2)


def a_merge_that_fails_leaves_the_bundle_as_it_was(folder):
    bundle = folder / "kept.bundle"
    tune("merge", ONE, "--output", bundle)
    before = bundle.read_bytes()
    said = tune("merge", ONE, "--output", folder / "no_such_folder/x.bundle", code=2)
    assert "cannot write" in said, said
    # No byte may be written, as on a full disk.
    limited = f"ulimit -f 0; exec {OPMUX} tune merge {ONE} {OTHER} {ONE} --output {bundle}"
    ran = subprocess.run(["bash", "-c", f"trap '' XFSZ; {limited}"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and "cannot write" in ran.stderr, ran
    assert bundle.read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["kept.bundle"], list(folder.iterdir())


def status_lists_what_programs_find(folder):
    bundle = folder / "fleet.bundle"
    tune("merge", ONE, "--output", bundle)
    os.environ.update(OPMUX_TUNING=str(bundle), OPMUX_STATE_DIR=str(folder / "state"))
    said = tune("status")
    assert said == f"OPMUX_TUNING  {bundle}: 3 rows, 0 used, 3 of other machines\n", said
    (found,) = json.loads(tune("status", "--json"))["bundles"]
    assert found["rows"] == found["foreign"] == 3 and len(found["digest"]) == 64, found
    bundle.write_bytes(bundle.read_bytes()[:100])
    assert "refused: the tuning bundle is truncated" in tune("status", code=1)
    shown = subprocess.run([OPMUX, "config", "show"], capture_output=True, text=True, timeout=60).stdout
    assert f"{bundle}" in shown and "OPMUX_TUNING (environment)" in shown, shown
    os.environ["OPMUX_TUNING"] = ""
    assert tune("status") == "no bundle was found\n"


def signs_bundles(folder):
    def plugin(*words):
        subprocess.run([OPMUX, "plugin", *map(str, words)], check=True, capture_output=True, timeout=60)

    bundle, keys = folder / "fleet.bundle", folder / "keys"
    keys.mkdir()
    plugin("keygen", "acme", "--folder", keys)
    tune("merge", ONE, "--output", bundle)
    assert "trust.unsigned" in tune("verify", bundle, "--keyring", keys, code=1)
    assert tune("sign", bundle, "--key", keys / "acme.key") == f"wrote {bundle}.sig\n"
    assert tune("verify", bundle, "--keyring", keys).endswith(f"{bundle}: signed by acme\n")
    tune("merge", OTHER, "--output", bundle)
    assert "refused: trust.tampered" in tune("verify", bundle, "--keyring", keys, code=1)
    plugin("keygen", "stranger", "--folder", folder)
    tune("sign", bundle, "--key", folder / "stranger.key")
    assert "refused: trust.key" in tune("verify", bundle, "--keyring", keys, code=1)
    assert "no_such.key" in tune("sign", bundle, "--key", folder / "no_such.key", code=2)
    assert f"opmux: {ONE}: " in tune("sign", ONE, "--key", keys / "acme.key", code=2)
    assert "only a bundle" in tune("verify", ONE, "--keyring", keys, code=2)


def draws_rows_of_an_operator(folder):
    picture = folder / "rows.svg"
    assert tune("show", ONE, "--picture", picture) == f"wrote {picture}\n"
    both = picture.read_text()
    assert both.startswith("<svg ") and both.count("font-weight='bold'") == 2, both
    tune("show", ONE, "--op", "matmul", "--picture", picture)
    assert picture.read_text().count("font-weight='bold'") == 1
    assert "cannot write" in tune("show", ONE, "--picture", folder / "no_such_folder/x.svg", code=2)


for test in (draws_rows_of_an_operator, merges_hosts, refuses_damaged_files,
             a_merge_that_fails_leaves_the_bundle_as_it_was, status_lists_what_programs_find, signs_bundles):
    with tempfile.TemporaryDirectory() as name:
        test(pathlib.Path(name))
