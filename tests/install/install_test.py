#!/usr/bin/env python3
"""Uses an installed opmux as a third-party project would.

usage: install_test.py CASE --source DIR --build DIR --prefix DIR --work DIR --cc CC --cxx CXX

The tree at --prefix was moved after it was installed: nothing in it may know where it was.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys


def run(*command, env=None):
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def clean_environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPMUX_")}
    return {**clean, **more}


def libdir(options):
    """The folder of the installed library."""
    return next(options.prefix.rglob("libopmux.so")).parent


def build(options, source, name):
    """Builds a project against the installed package; returns its build folder."""
    folder = options.work / name
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={options.prefix}",
        f"-DCMAKE_C_COMPILER={options.cc}", f"-DCMAKE_CXX_COMPILER={options.cxx}",
        "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
    run("cmake", "--build", folder)
    return folder


def expect(found, expected):
    if found != expected:
        sys.exit(f"expected:\n{expected}\nfound:\n{found}")


def consumer_says(options, name, program):
    said = run(program, env=clean_environment(LD_LIBRARY_PATH=str(libdir(options))))
    if "softmax/reference.scalar\nreference loaded\n" not in said:
        sys.exit(f"{name} says:\n{said}")
    if (libdir(options) / "opmux/backends/libopmux_simd.so").exists() and "simd loaded" not in said:
        sys.exit(f"{name} did not find the installed backends:\n{said}")


def find_package(options):
    folder = build(options, options.source / "tests/install/find_package", "find_package")
    consumer_says(options, "consumer", folder / "consumer")
    expect(run(folder / "c_consumer", env=clean_environment()), "there is no operator 'sofmax'; did you mean 'softmax'?\n")


def pkg_config(options):
    if shutil.which("pkg-config") is None:
        print("skipped: no pkg-config")
        sys.exit(77)
    env = {**os.environ, "PKG_CONFIG_PATH": str(libdir(options) / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "opmux", env=env).split()
    version = (options.source / "include/opmux/version.h").read_text()
    assert f'"{run("pkg-config", "--modversion", "opmux", env=env).strip()}"' in version
    program = options.work / "pkg_config_consumer"
    run(options.cxx, "-std=c++20", options.source / "tests/install/consumer.cpp", *flags,
        f"-Wl,-rpath,{libdir(options)}", "-o", program)
    consumer_says(options, "pkg-config's consumer", program)


def plugin_against_the_header_alone(options):
    folder = build(options, options.source / "tests/install/plugin", "plugin")
    needed = run("readelf", "--dynamic", folder / "libzeta.so")
    assert "libopmux" not in needed, needed
    env = clean_environment(OPMUX_PLUGIN_PATH=str(folder), OPMUX_BACKEND_SIMD="0")
    said = run(options.prefix / "bin/opmux", "explain", "softmax", "x=f32[2,3]", env=env)
    assert "softmax/zeta.none         chosen" in said, said


def command(options):
    said = run(options.prefix / "bin/opmux", "list", "softmax", env=clean_environment())
    assert "softmax/reference.scalar  reference  50    available" in said, said


def platform(options):
    """The platform is chosen by the devices of this machine, or named; its file is installed."""
    opmux = options.prefix / "bin/opmux"
    shown = [line for line in run(opmux, "config", "show", env=clean_environment()).splitlines()
             if line.startswith("platform ")]
    assert len(shown) == 1 and "built-in, auto: " in shown[0], shown
    name = shown[0].split()[1]
    assert (options.prefix / f"share/opmux/platforms/{name}.yaml").is_file(), shown
    env = clean_environment(OPMUX_PLATFORM="ascend")
    named = run(opmux, "config", "show", env=env)
    assert "OPMUX_PLATFORM (environment)" in named and "ascend.yaml" in named, named


def headers_without_exceptions(options):
    """Compiles each header alone, in C++ without exceptions; C headers also in C11."""
    include = options.prefix / "include"
    headers = sorted(path for path in include.rglob("*") if path.is_file())
    assert len(headers) > 30 and include / "opmux/plugin/call.hpp" in headers, headers
    empty = options.work / "empty.c"
    empty.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I",
              include, "-x"]

    def compile_alone(header):
        rest = ["-include", header.relative_to(include), empty]
        run(options.cxx, *strict, "c++", "-std=c++20", "-fno-exceptions", *rest)
        if header.suffix == ".h":
            run(options.cc, *strict, "c", "-std=c11", *rest)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_alone, headers))


def example(options, name):
    source = options.source / "examples" / name
    folder = build(options, source, f"example_{name}")
    said = run(folder / name, env=clean_environment())
    expected = source / "expected.output"
    if os.environ.get("UPDATE_EXPECTED"):
        expected.write_text(said, encoding="utf-8")
    expect(said, expected.read_text(encoding="utf-8"))


def cuda_plugin(options):
    """Compiles, links and loads the plugin; without a device it must report the reason."""
    folder = build(options, options.source / "examples/plugins/cuda", "cuda_plugin")
    env = clean_environment(OPMUX_PLUGIN_PATH=str(folder))
    said = run(options.prefix / "bin/opmux", "list", "silu_and_mul", env=env)
    lines = [line for line in said.splitlines() if "silu_and_mul/cuda_example.kernel" in line]
    line = "".join(lines)
    assert line.endswith(" available") or "not available: " in line, said


def hardening(options):
    """Every installed program and library has the protections that tools/checksec lists."""
    checksec = options.source / "tools/checksec"
    said = run(sys.executable, "-B", checksec, "--print", options.prefix)
    for name in ("libopmux.so", "bin/opmux", "opmux-probe", "libopmux_simd.so"):
        if not re.search(rf"{name}[.0-9]*: ok", said):
            sys.exit(f"{name} was not checked:\n{said}")
    # A library without the flags lacks all of them.
    source, library = options.work / "plain.c", options.work / "plain.so"
    source.write_text("int plain(int x) { return x; }\n", encoding="utf-8")
    run(options.cc, "-shared", "-fPIC", "-fcf-protection=none", "-fno-stack-protector", "-Wl,-z,norelro",
        "-Wl,-z,lazy", "-Wl,-z,execstack", "-Wl,-rpath,/tmp", "-o", library, source)
    found = subprocess.run([sys.executable, "-B", checksec, library], capture_output=True, text=True)
    for word in ("relro", "stack", "runpath", "canary", "cet"):
        if f"{library}: {word}: " not in found.stdout:
            sys.exit(f"tools/checksec does not miss {word}:\n{found.stdout}{found.stderr}")
    if found.returncode == 0:
        sys.exit(f"tools/checksec accepts {library}")


def prepare(options):
    """Installs, then moves the tree."""
    first = options.prefix.with_name("first_place")
    for folder in (first, options.prefix):
        shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", options.build, "--prefix", first)
    if others := {path.name for path in first.iterdir()} - {"bin", "include", "lib", "libexec", "share"}:
        sys.exit(f"the prefix has {sorted(others)}, which no program looks for there")
    first.rename(options.prefix)


def main(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    for name in ("source", "build", "prefix", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True)
    options = parser.parse_args()
    case, _, name = options.case.partition(":")
    if name:
        example(options, name)
    else:
        cases[case](options)


if __name__ == "__main__":
    main(globals())
