"""The native reader for torch tensors: its location in the cache, its checks, and its build.

`python -m opmux.torch build` compiles it into a folder that only the user can write to. It is used
if it was built for the running torch. opmux never compiles it without being asked.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from . import _core
from ._errors import Unavailable

_MODULE = "_opmux_torch_reader"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _torch() -> Any:
    return sys.modules["torch"]


def _made_for() -> dict[str, str]:
    torch = _torch()
    return {
        "torch": str(torch.__version__),
        "torch_revision": str(torch.version.git_version),
        "python": str(sysconfig.get_config_var("SOABI")),
        "reader": str(_core.reader_version),
    }


def folder() -> pathlib.Path:
    """Returns the cache folder of the reader for the running torch and Python."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    cache = pathlib.Path(root) if os.path.isabs(root) else pathlib.Path.home() / ".cache"
    key = _made_for()
    name = f"torch-{key['torch']}-{key['python']}-reader-{key['reader']}"
    return cache / "opmux" / name


def _distrust(path: pathlib.Path, wanted: str) -> str:
    """Returns why another user could have written to `path`; empty if only this user could."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"{path}: {error.strerror}"
    kind = stat.S_ISDIR if wanted == "folder" else stat.S_ISREG
    if not kind(found.st_mode):
        return f"{path} is not a {wanted}"
    if found.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    if found.st_mode & _OTHERS_WRITE:
        return f"{path} can be written to by others"
    return ""


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refusal() -> str:
    """Returns why the cached reader cannot be used; empty if it can."""
    place = folder()
    if not place.exists():
        return "not built: run python -m opmux.torch build"
    library, note = place / f"{_MODULE}.so", place / "built.json"
    for path, wanted in ((place.parent, "folder"), (place, "folder"), (library, "file"),
                         (note, "file")):  # fmt: skip
        if reason := _distrust(path, wanted):
            return reason
    try:
        built = json.loads(note.read_text())
    except ValueError:
        return f"{note} is not valid JSON"
    if built.get("made_for") != _made_for():
        return "built for another version of torch, Python or opmux: rebuild it"
    return "" if built.get("sha256") == _digest(library) else f"{library} was modified"


def use() -> str:
    """Switches torch tensors to the cached reader; returns why it cannot be used, else ""."""
    if reason := refusal():
        return reason
    path = str(folder() / f"{_MODULE}.so")
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, path)
    spec = importlib.util.spec_from_file_location(_MODULE, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        _core.use_torch_reader(module.reader)
    except (ImportError, ValueError, AttributeError) as error:
        return f"{path}: {error}"
    return ""


def _headers() -> pathlib.Path:
    here = pathlib.Path(__file__).resolve().parent
    for place in (here / "include", here.parents[1] / "include"):
        if (place / "opmux" / "reader.h").exists():
            return place
    raise Unavailable("opmux/reader.h is not installed", "python.headers")


def _compiler() -> list[str]:
    if own := os.environ.get("CXX"):
        return shlex.split(own)
    for name in ("g++", "clang++", "c++"):
        if found := shutil.which(name):
            return [found]
    raise Unavailable("no C++ compiler was found: set CXX", "python.compiler")


def _command(output: pathlib.Path) -> list[str]:
    torch = _torch()
    root = pathlib.Path(torch.__file__).parent
    source = pathlib.Path(__file__).resolve().parent / "torch" / "_reader.cpp"
    includes = [
        _headers(),
        pathlib.Path(sysconfig.get_paths()["include"]),
        root / "include",
        root / "include" / "torch" / "csrc" / "api" / "include",
    ]
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    flags = ["-std=c++20", "-O3", "-fvisibility=hidden", "-shared", "-fPIC"]
    return [
        *_compiler(), *flags, f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-o", str(output), str(source),
        *(f"-I{include}" for include in includes),
        f"-L{root / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip


def _private(place: pathlib.Path) -> None:
    """Creates the folder with mode 0700. Raises if it exists and other users could write to it."""
    place.parent.parent.mkdir(parents=True, exist_ok=True)
    for path in (place.parent, place):
        path.mkdir(mode=0o700, exist_ok=True)
        if reason := _distrust(path, "folder"):
            raise Unavailable(f"{reason}: remove it", "python.cache")


def build() -> pathlib.Path:
    """Compiles the reader for the running torch, which takes about 20 s, and returns its path."""
    import torch  # noqa: F401

    place = folder()
    _private(place)
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        made = pathlib.Path(scratch) / f"{_MODULE}.so"
        done = subprocess.run(_command(made), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"compiling the reader failed:\n{done.stderr}", "python.compile")
        made.chmod(0o600)
        note = pathlib.Path(scratch) / "built.json"
        note.write_text(json.dumps({"made_for": _made_for(), "sha256": _digest(made)}))
        note.chmod(0o600)
        made.replace(place / made.name)
        note.replace(place / note.name)
    return place / f"{_MODULE}.so"
