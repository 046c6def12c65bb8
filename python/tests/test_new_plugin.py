"""`opmux plugin new --python`: a project that builds alone and is found by its entry point."""

import os
import pathlib
import subprocess
import sys

import pytest

import opmux

PACKAGE = pathlib.Path(opmux.__file__).parent
# A wheel contains the command; a build tree has it next to the package.
COMMANDS = [PACKAGE / "bin/opmux", PACKAGE.parent.parent / "bin/opmux"]
COMMAND = next((command for command in COMMANDS if command.exists()), None)
pytestmark = pytest.mark.skipif(COMMAND is None, reason="the opmux command was not built")


def run(folder, *command, site=None):
    keep = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    path = [str(site)] if site else []
    keep["PYTHONPATH"] = os.pathsep.join([*path, str(PACKAGE.parent)])
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=keep, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_new_python_plugin_installs_and_passes_its_own_tests(tmp_path):
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(tmp_path, COMMAND, "plugin", "new", "zeta", "--python", "--folder", "project")
    project, site = tmp_path / "project", tmp_path / "site"
    run(project, *pip, "--no-deps", "--no-build-isolation", "--no-index", "--target", site, ".")
    said = run(project, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", site=site)
    assert "5 passed" in said
    assert "acme" not in (project / "pyproject.toml").read_text()


def test_without_its_entry_point_the_tests_of_a_new_plugin_fail(tmp_path):
    run(tmp_path, COMMAND, "plugin", "new", "zeta", "--python")
    project = tmp_path / "zeta"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with pytest.raises(AssertionError, match="test_opmux_found_the_plugin"):
        run(project, *command, site=project / "src")
