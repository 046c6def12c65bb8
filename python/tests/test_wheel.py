"""Builds a source distribution and a wheel, and installs the wheel in an empty environment outside
of the tree."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

pytestmark = pytest.mark.full

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICKSTART = """
import pathlib, sys
import numpy as np
import opmux

assert pathlib.Path(opmux.__file__).is_relative_to(sys.prefix), opmux.__file__
assert "torch" not in sys.modules
x, weight = np.ones((4, 4096), "f4"), np.full(4096, 2, "f4")
with opmux.expect("rms_norm/simd.*"):
    y = opmux.ops.rms_norm(x, weight, eps=0)
np.testing.assert_allclose(y, 2, rtol=1e-6)
with opmux.expect("matmul/onednn.*"), opmux.require("matmul/onednn.*"):
    np.testing.assert_allclose(opmux.ops.matmul(np.ones((8, 16), "f4"), np.ones((16, 8), "f4")), 16)
with opmux.expect("rms_norm/reference.scalar"), opmux.require("reference"):
    opmux.ops.rms_norm(x, weight, out=y)
print(opmux.explain("rms_norm", x, weight).chosen)
"""


def run(*command, cwd, **more):
    """Runs a command without this tree's environment; asserts success and returns its output."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OPMUX"))}
    words = [str(word) for word in command]
    ran = subprocess.run(
        words, cwd=cwd, env={**environment, **more}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="module")
def sdist(folder):
    """The source distribution of the working tree."""
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, folder, cwd=ROOT)
    return next(folder.glob("opmux-*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(folder, sdist):
    """The wheel that pip builds from the source distribution; pip fetches the build
    requirements."""
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, sdist)
    run(*pip, cwd=folder)
    return next(folder.glob("opmux-*linux_x86_64.whl"))


@pytest.fixture(scope="module")
def repaired(folder, wheel):
    into = folder / "repaired"
    tools = f"{pathlib.Path(sys.executable).parent}:{ROOT}/build/venv/bin:{os.environ['PATH']}"
    command = (sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", into, wheel)
    run(*command, cwd=folder, PATH=tools)
    return next(into.glob("opmux-*.whl"))


def test_the_source_distribution_holds_what_is_built_and_no_more(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "pyproject.toml", "include/opmux/version.h"} <= names
    assert not [name for name in names if name.startswith(("build/", "docs/", "tests/"))]


def test_the_wheel_holds_no_tests_and_no_caches(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "opmux/bin/opmux" in names
    assert not [name for name in names if "tests/" in name or "__pycache__" in name]


def test_the_repaired_wheel_is_consistent_with_a_manylinux_tag(repaired, folder):
    tag = re.search(r"manylinux_2_\d+_x86_64", repaired.name)
    assert tag is not None, repaired.name
    shown = run(sys.executable, "-m", "auditwheel", "show", repaired, cwd=folder)
    assert f'"{tag[0]}"' in shown


def test_openmp_keeps_its_name_so_that_torch_can_share_it(repaired):
    with zipfile.ZipFile(repaired) as archive:
        found = [name for name in archive.namelist() if "libgomp" in name]
    assert found == ["opmux/lib/opmux/engines/libgomp.so.1"]


def build_elsewhere(sdist, place, **more):
    """The repaired wheel that tools/wheel builds from the sources, unpacked in another folder."""
    place.mkdir(parents=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    source = next(place.iterdir())
    (source / "build").mkdir()
    for name in ("venv", "libyaml"):
        (source / "build" / name).symlink_to(ROOT / "build" / name)
    run("bash", "tools/wheel", cwd=source, SOURCE_DATE_EPOCH="1700000000", **more)
    return next((source / "build/wheels").glob("*.whl"))


def test_two_builds_in_different_folders_are_equal(sdist, folder):
    first = build_elsewhere(sdist, folder / "a")
    # Without the compiler cache, which would return the objects of the first build.
    second = build_elsewhere(
        sdist, folder / "another_folder/with_a_longer_name", CCACHE_DISABLE="1"
    )
    assert first.name == second.name
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        assert one.namelist() == other.namelist()
        assert not [name for name in one.namelist() if one.read(name) != other.read(name)]
    assert first.read_bytes() == second.read_bytes()
    sboms = [next(made.parent.glob("*.spdx.json")).read_bytes() for made in (first, second)]
    assert sboms[0] == sboms[1]


def test_programs_and_libraries_of_the_wheel_are_hardened(repaired, folder):
    said = run(sys.executable, ROOT / "tools/checksec", "--print", repaired, cwd=folder)
    assert "opmux/lib/libopmux.so: ok" in said and "opmux/bin/opmux: ok" in said


def test_a_wheel_ships_rows_of_its_own_builds_only(repaired, folder):
    place = folder / "shipping"
    place.mkdir()
    wheel = place / repaired.name
    wheel.write_bytes(repaired.read_bytes())
    rows = folder / "foreign.txt"
    rows.write_text(
        "opmux-tuning 1 measurement=1\n\n"
        "machine ExampleVendor 1-2-3 isa=avx2 states=7 llc=1K cores=2\n"
        "soft kernel=6.1.0 microcode=0x1\n\noperator softmax schema=0000000000000007\n"
        "cell f32,f32 H=64 threads=1 eager\n"
        "row rows=1..4 simd.avx2@01 vs reference.scalar@02 log=-0.5 "
        "low=-0.6 high=-0.4 rounds=24 rigor=full date=2026-11-16 tool=0.1.0 host=0000000000000001\n"
    )
    tool = ROOT / "tools/ship_tuning"
    refused = subprocess.run([tool, wheel, rows], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "other builds than this wheel's: 01, 02" in refused.stderr
    assert wheel.read_bytes() == repaired.read_bytes()
    run(tool, "--measure", 20, wheel, cwd=folder)
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--target",
        "shipped",
        wheel,
        cwd=folder,
    )
    said = run(
        folder / "shipped/opmux/bin/opmux", "tune", "status", cwd=folder,
        OPMUX_STATE_DIR=str(folder / "state"),
    )  # fmt: skip
    found = re.match(r"shipped  \S+shipped.bundle: (\d+) rows, (\d+) used", said)
    assert found is not None and found[1] == found[2] != "0", said


def test_the_quickstart_runs_in_an_empty_environment(repaired, folder):
    run(sys.executable, "-m", "venv", "empty", cwd=folder)
    python = folder / "empty" / "bin" / "python"
    run(python, "-m", "pip", "install", repaired, "numpy", cwd=folder)
    assert run(python, "-c", QUICKSTART, cwd=folder).startswith("rms_norm/simd.")
    assert "reference" in run(folder / "empty/bin/opmux", "list", "rms_norm", cwd=folder)
    assert "numpy.ndarray" in run(folder / "empty/bin/opmux", "doctor", cwd=folder)
