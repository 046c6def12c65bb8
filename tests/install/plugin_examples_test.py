#!/usr/bin/env python3
"""Copies the plugins of examples/plugins out of the tree and builds them against the installed package.

usage: as install_test.py; the case is the folder of the example
"""
import pathlib
import shutil
import subprocess
import tempfile

import install_test
from install_test import build, clean_environment, run


def passes_its_tests(options, name):
    with tempfile.TemporaryDirectory() as empty:
        source = pathlib.Path(empty, name)
        shutil.copytree(options.source / "examples/plugins" / name, source)
        folder = build(options, source, f"example_plugin_{name}")
    # The sources have been removed; the built files must work without them.
    said = run("ctest", "--test-dir", folder, "--output-on-failure", env=clean_environment())
    assert "100% tests passed" in said and "No tests" not in said, said
    needed = subprocess.run(["readelf", "--dynamic", *folder.glob("lib*.so")], text=True, check=True,
                            capture_output=True).stdout
    assert "libopmux" not in needed, needed


CASES = {name: lambda options, name=name: passes_its_tests(options, name)
         for name in ("softmax_c", "packed_linear", "tabulated", "swa_sink")}

if __name__ == "__main__":
    install_test.main(CASES)
