#!/usr/bin/env python3
"""Actions and packages of others are pinned, and every fuzz target is complete.

usage: pinned_test.py ROOT
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])


def actions_are_pinned_by_commit():
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        for line in re.findall(r"^.*\buses:.*$", workflow.read_text(encoding="utf-8"), re.M):
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d", line), f"{workflow}: {line.strip()}"


def packages_are_pinned_with_hashes():
    ran = subprocess.run([sys.executable, "-B", ROOT / "tools/lock_requirements", "--check"], capture_output=True,
                         text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def every_fuzz_target_has_a_corpus_and_a_limit():
    folder = ROOT / "tests/fuzz"
    limits = dict(re.findall(r"^(\w+) (\d+)$", (folder / "limits.txt").read_text(encoding="utf-8"), re.M))
    names = {path.stem.removesuffix("_fuzz") for path in folder.glob("*_fuzz.cpp")} | {"python_arguments"}
    assert set(limits) == names, set(limits) ^ names
    built = set(re.findall(r"^opmux_add_fuzz_target\((\w+)", (folder / "CMakeLists.txt").read_text(encoding="utf-8"), re.M))
    assert built == names - {"python_arguments"}, built ^ names
    page = (ROOT / "docs/dev/testing.md").read_text(encoding="utf-8")
    for name in names:
        assert list((folder / "corpus" / name).iterdir()), f"the corpus of {name} is empty"
        assert f"`{name}`" in page, f"docs/dev/testing.md does not describe {name}"


actions_are_pinned_by_commit()
packages_are_pinned_with_hashes()
every_fuzz_target_has_a_corpus_and_a_limit()
