#!/usr/bin/env python3
"""Builds projects created by `opmux plugin new` outside the tree, using only the installed package.

usage: as install_test.py
"""
import os
import pathlib
import re
import subprocess
import tempfile

import install_test
from install_test import clean_environment, libdir


def environment_of(options, **more):
    """A user's environment: the installed command, pkg-config's files, no OPMUX_*."""
    path = f"{options.prefix / 'bin'}:{os.environ['PATH']}"
    return clean_environment(PATH=path, CC=options.cc, CXX=options.cxx,
                             PKG_CONFIG_PATH=str(libdir(options) / "pkgconfig"),
                             CMAKE_PREFIX_PATH=str(options.prefix), **more)


def names_no_source(options, folder):
    """No generated file may mention the tree that opmux was built from."""
    source = str(options.source).encode()
    for file in folder.rglob("*"):
        if file.is_file() and source in file.read_bytes():
            # The installed tree of this test is inside the build tree.
            inside = str(options.prefix).encode()
            assert source not in file.read_bytes().replace(inside, b""), file


def shell_lines(readme, word):
    """The lines of the README's shell blocks that contain a word."""
    blocks = re.findall(r"```sh\n(.*?)```", readme.read_text(encoding="utf-8"), re.S)
    return [line for block in blocks for line in block.splitlines() if word in line]


def in_folder(folder, env, *command):
    done = subprocess.run([str(word) for word in command], cwd=folder, env=env, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def builds_tests_and_one_line(options, language, provider):
    with tempfile.TemporaryDirectory() as empty:
        folder, env = pathlib.Path(empty, "zeta"), environment_of(options)
        in_folder(empty, env, "opmux", "plugin", "new", "zeta", f"--{language}")
        readme = folder / "README.md"
        for line in [*shell_lines(readme, "cmake"), *shell_lines(readme, "plugin check"),
                     *shell_lines(readme, "ctest")]:
            said = in_folder(folder, env, "sh", "-c", line)
        assert "100% tests passed" in said and "acme" not in said, said
        names_no_source(options, folder)
        compiler, = shell_lines(readme, "-shared")
        in_folder(folder, env, "sh", "-ec", compiler)
        env["OPMUX_PLUGIN_PATH"] = str(folder)
        env["OPMUX_PREFER"] = "vendor:zeta"
        said = in_folder(folder, env, "opmux", "explain", "rms_norm", "x=f32[2,4]")
        assert re.search(rf"rms_norm/zeta.{provider} +chosen", said), said
        done = subprocess.run(["opmux", "plugin", "new", "zeta"], cwd=empty, env=env, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 2 and "exists and is not an empty folder" in done.stderr, done


def new_c_plugin(options):
    builds_tests_and_one_line(options, "c", "scalar")


def new_cpp_plugin(options):
    builds_tests_and_one_line(options, "cpp", "scalar")



if __name__ == "__main__":
    install_test.main(globals())
