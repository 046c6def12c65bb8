"""The torch reader: its folder, and the checks before it is used."""
# ruff: noqa: E402

import hashlib
import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import opmux
from opmux import _torch_reader


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder like one made by `build`, except that the library is not a shared object."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = _torch_reader.folder()
    _torch_reader._private(place)
    library = place / "_opmux_torch_reader.so"
    library.write_bytes(b"no library")
    note = place / "built.json"
    digest = hashlib.sha256(b"no library").hexdigest()
    note.write_text(json.dumps({"made_for": _torch_reader._made_for(), "sha256": digest}))
    return place


def test_the_folder_is_private_and_keyed_by_versions(cache):
    assert cache.stat().st_mode & 0o777 == 0o700
    assert cache.parent.stat().st_mode & 0o777 == 0o700
    assert torch.__version__ in cache.name
    assert "cpython" in cache.name
    assert _torch_reader.refusal() == ""


def test_nothing_is_used_or_compiled_where_nothing_was_built(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "python -m opmux.torch build" in _torch_reader.use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", ["", ".", "_opmux_torch_reader.so", "built.json"])
def test_what_others_can_write_to_is_not_used(cache, part):
    path = cache.parent if part == "" else cache / part
    path.chmod(path.stat().st_mode | 0o020)
    assert "can be written to by others" in _torch_reader.use()


def test_what_belongs_to_another_user_is_not_used(cache, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "belongs to another user" in _torch_reader.use()


def test_a_changed_library_is_not_used(cache):
    (cache / "_opmux_torch_reader.so").write_bytes(b"another one")
    assert "was modified" in _torch_reader.use()


def test_a_link_is_not_followed(cache, tmp_path):
    moved = tmp_path / "elsewhere"
    cache.rename(moved)
    cache.symlink_to(moved)
    assert "is not a folder" in _torch_reader.use()


def test_one_built_for_another_torch_is_not_used(cache):
    note = cache / "built.json"
    built = json.loads(note.read_text())
    built["made_for"]["torch_revision"] = "another"
    note.write_text(json.dumps(built))
    assert "another version of torch" in _torch_reader.use()


def test_one_that_does_not_load_is_not_used(cache):
    assert "_opmux_torch_reader.so" in _torch_reader.use()


def test_building_does_not_take_over_a_folder_of_others(cache):
    cache.parent.chmod(0o777)
    with pytest.raises(opmux.Unavailable, match="can be written to by others"):
        _torch_reader.build()


@pytest.mark.full
def test_the_command_builds_a_reader_that_calls_use(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "opmux.torch", "build"]
    subprocess.run(command, env=environment, check=True)
    program = """
import torch, opmux
x = torch.randn(2, 8)
with opmux.expect("rms_norm/simd.*"):
    opmux.ops.rms_norm(x)
print(opmux.readers())
try:
    opmux.ops.layer_norm(x.requires_grad_())
except opmux.InvalidArgument as error:
    print(error.reason)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert "('torch.Tensor', 'module', 'torch 2." in done.stdout
    assert "python.requires_grad" in done.stdout
