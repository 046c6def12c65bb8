"""The report of `opmux doctor`."""

import json
import subprocess
import sys

import pytest

import opmux
from opmux import doctor


@pytest.fixture(scope="module")
def found():
    return doctor.examine()


def run(*words, **environment):
    import os

    command = [sys.executable, "-m", "opmux", "doctor", *words]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_names_its_own_version(found):
    assert found["versions"]["opmux"] == opmux.__version__


def test_counts_every_implementation_of_every_backend(found):
    listed = [one for info in opmux.list_operators() for one in info.implementations]
    counted = {b["name"]: b["implementations"] for b in found["backends"]}
    assert sum(counted.values()) == len(listed)
    assert counted["reference"] == len([i for i in listed if i.backend == "reference"])


def test_says_which_reader_a_type_has(found):
    paths = {reader["type"]: reader["path"] for reader in found["readers"]}
    assert paths["numpy.ndarray"] == "protocol"


def test_says_which_reader_torch_has(found):
    pytest.importorskip("torch")
    paths = {reader["type"]: reader["path"] for reader in found["readers"]}
    assert paths["torch.Tensor"] in ("module", "exchange")


def test_lists_settings_with_their_origin(found):
    assert {"key": "strict", "value": "false", "origin": "built-in"} in found["settings"]


def test_prints_data_for_programs():
    ran = run("--json")
    assert ran.returncode == 0, ran.stderr
    assert set(json.loads(ran.stdout)) == {
        "versions", "settings", "backends", "readers", "plugins",
    }  # fmt: skip


def test_prints_a_text_and_finds_a_plugin_that_does_not_load():
    ran = run(OPMUX_PYTHON_PLUGINS="no_such_module_anywhere")
    assert ran.returncode == 1
    assert "no_such_module_anywhere  python, refused: ModuleNotFoundError" in ran.stdout
    assert "reference" in ran.stdout


def test_a_backend_that_is_not_available_says_why():
    backend = {"name": "b", "implementations": 3, "available": 1, "reasons": ["no device"]}
    text = doctor.as_text(
        {"versions": {}, "settings": [], "backends": [backend], "readers": [], "plugins": []}
    )
    assert "b  1 of 3 implementations available; no device" in text


def test_a_library_that_is_no_plugin_is_named_by_its_file(tmp_path):
    (tmp_path / "libacme.so").write_text("no library")
    ran = run("--json", OPMUX_PLUGIN_PATH=str(tmp_path))
    assert ran.returncode == 1
    found = {plugin["name"]: plugin for plugin in json.loads(ran.stdout)["plugins"]}
    assert found["libacme.so"]["kind"] == "native"
    assert not found["libacme.so"]["loaded"]
    assert found["libacme.so"]["reason"]
