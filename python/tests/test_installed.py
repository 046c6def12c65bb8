"""The installed package: it works without the source tree."""

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import opmux

PACKAGE = pathlib.Path(opmux.__file__).parent
pytestmark = pytest.mark.skipif(
    not (PACKAGE / "bin" / "opmux").exists(),
    reason="opmux runs from a build tree, not from a wheel",
)

CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(opmux REQUIRED CONFIG)
add_executable(user user.cpp)
target_link_libraries(user PRIVATE opmux::opmux)
"""
PROGRAM = """
#include <iostream>
#include <opmux/opmux.hpp>
int main() {
  auto runtime = opmux::Runtime::create();
  if (!runtime) return 1;
  for (const auto& plugin : runtime->plugins().list()) std::cout << plugin.name << "\\n";
}
"""


def test_carries_headers_schemas_backends_and_engines():
    for part in ("include/opmux/abi.h", "include/opmux/reader.h", "lib/libopmux.so",
                 "lib/opmux/backends/libopmux_simd.so", "lib/opmux/backends/libopmux_onednn.so",
                 "lib/opmux/engines/libdnnl.so.3", "share/opmux/operators/rms_norm.schema",
                 "torch/_reader.cpp", "py.typed"):  # fmt: skip
        assert (PACKAGE / part).is_file(), part


def test_every_backend_comes_from_the_package():
    found = [plugin for plugin in opmux.default_runtime().plugins() if plugin.path != "built in"]
    assert {"simd", "onednn"} <= {plugin.name for plugin in found}
    assert all(plugin.loaded for plugin in found), [plugin.reason for plugin in found]
    assert {pathlib.Path(p.path).parent for p in found} == {PACKAGE / "lib/opmux/backends"}


def test_needs_no_other_package():
    wanted = importlib.metadata.requires("opmux") or []
    assert [line for line in wanted if "extra ==" not in line] == []
    extras = importlib.metadata.metadata("opmux").get_all("Provides-Extra")
    assert {"onednn", "torch", "vllm", "dev"} <= set(extras)


def test_its_tag_names_the_oldest_linux():
    text = importlib.metadata.distribution("opmux").read_text("WHEEL")
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.search(rf"^Tag: {version}-{version}-manylinux_2_\d+_x86_64$", text, re.MULTILINE)


def test_its_version_is_that_of_the_library():
    assert importlib.metadata.version("opmux") == opmux.__version__


def test_the_command_lists_what_the_package_lists():
    command = pathlib.Path(sys.executable).parent / "opmux"
    ran = subprocess.run([command, "list", "--json"], capture_output=True, text=True, check=True)
    listed = {operator["name"] for operator in json.loads(ran.stdout)["operators"]}
    assert listed == {info.name for info in opmux.create_runtime().list()}


def test_the_command_says_what_is_wrong_and_returns_2():
    command = [sys.executable, "-m", "opmux", "lits"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "did you mean 'list'" in ran.stderr


def test_cmake_finds_it_and_a_program_is_built_with_it(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS)
    (tmp_path / "user.cpp").write_text(PROGRAM)
    environment = {**os.environ, "opmux_DIR": opmux.get_cmake_dir()}
    for command in (["cmake", "-S", ".", "-B", "made"], ["cmake", "--build", "made"]):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    ran = subprocess.run([tmp_path / "made/user"], capture_output=True, text=True, check=True)
    assert {"reference", "simd", "onednn"} <= set(ran.stdout.split())


def test_headers_lie_where_get_include_says():
    assert pathlib.Path(opmux.get_include(), "opmux", "opmux.hpp").is_file()
