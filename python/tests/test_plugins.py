"""Python plugins: found by entry point and by variable; a broken one does not affect others."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

PROBE = """
import json, numpy, opmux
with opmux.report() as calls:
    opmux.ops.rms_norm(numpy.ones((2, 4), "f4"))
plugins = [p for p in opmux.plugins() if isinstance(p, opmux._plugins.PythonPlugin)]
print(json.dumps({"ran": calls.implementation,
                  "plugins": {p.name: [p.source, p.loaded, p.reason] for p in plugins}}))
"""
GOOD = """
import opmux
def register(runtime):
    @opmux.implementation("rms_norm", "{name}.v1", priority={priority}, runtime=runtime)
    def norm(x, weight, eps, round_before_weight, *, out): out[:] = 1
"""


@pytest.fixture
def folder(tmp_path):
    """A folder on the module search path of the interpreter that the test starts."""

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))

    def install(distribution, **entries):
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {target}" for name, target in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[opmux.plugins]", *lines]) + "\n")

    def run(script=PROBE, **environment):
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, **environment}
        command = [sys.executable, "-c", script]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1]), ran.stderr

    return type("Folder", (), {"write": staticmethod(write), "install": staticmethod(install),
                               "run": staticmethod(run)})  # fmt: skip


def test_by_entry_point(folder):
    folder.write("acme_norms", GOOD.format(name="acme", priority=900))
    folder.install("acme", acme="acme_norms")
    found, _ = folder.run()
    assert found == {"ran": "rms_norm/acme.v1", "plugins": {"acme": ["entry point", True, ""]}}


def test_by_entry_point_of_a_function(folder):
    folder.write("acme_norms", GOOD.format(name="acme", priority=900))
    folder.install("acme", acme="acme_norms:register")
    assert folder.run()[0]["ran"] == "rms_norm/acme.v1"


def test_by_variable(folder):
    folder.write("acme_norms", GOOD.format(name="acme", priority=900))
    found, _ = folder.run(OPMUX_PYTHON_PLUGINS="acme_norms")
    assert found["ran"] == "rms_norm/acme.v1"
    assert found["plugins"] == {"acme_norms": ["OPMUX_PYTHON_PLUGINS", True, ""]}


def test_several(folder):
    folder.write("first", GOOD.format(name="first", priority=800))
    folder.write("second", GOOD.format(name="second", priority=900))
    folder.install("one", one="first")
    found, _ = folder.run(OPMUX_PYTHON_PLUGINS="second")
    assert found["ran"] == "rms_norm/second.v1" and set(found["plugins"]) == {"one", "second"}


BAD = {
    "raises when imported": "raise RuntimeError('at import')",
    "is not python": "def (",
    "has no register": "x = 1",
    "raises when registered": "def register(runtime): raise ValueError('at register')",
    "takes no runtime": "def register(): pass",
    "registers nonsense": "import opmux\ndef register(r): r.op('nonesuch')",
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_one_removes_nobody_else(folder, why):
    folder.write("bad", BAD[why])
    folder.write("good", GOOD.format(name="good", priority=900))
    folder.install("both", a_bad="bad", good="good")
    found, log = folder.run()
    assert found["ran"] == "rms_norm/good.v1"
    source, loaded, reason = found["plugins"]["a_bad"]
    assert source == "entry point" and not loaded and reason
    assert "plugin.refused: a_bad" in log


def test_a_missing_one(folder):
    found, _ = folder.run(OPMUX_PYTHON_PLUGINS="nonesuch")
    assert found["ran"].startswith("rms_norm/simd.")
    assert "ModuleNotFoundError" in found["plugins"]["nonesuch"][2]


def test_one_that_uses_the_default_runtime(folder):
    folder.write(
        "acme_norms", GOOD.format(name="acme", priority=900).replace(", runtime=runtime", "")
    )
    found, _ = folder.run(OPMUX_PYTHON_PLUGINS="acme_norms")
    assert found["ran"] == "rms_norm/acme.v1" and found["plugins"]["acme_norms"][1]


def test_one_that_calls_while_it_registers(folder):
    folder.write("eager", """
        import numpy, opmux
        def register(runtime):
            with opmux.expect("rms_norm/simd.*"):
                opmux.ops.rms_norm(numpy.ones((2, 4), "f4"))
    """)  # fmt: skip
    found, _ = folder.run(OPMUX_PYTHON_PLUGINS="eager")
    assert found["plugins"]["eager"][1:] == [True, ""]


def test_are_loaded_when_they_are_needed_and_not_before(folder):
    folder.write("noisy", "print('imported')\ndef register(runtime): print('registered')")
    found, _ = folder.run("import opmux, json; print(json.dumps('quiet'))",
                          OPMUX_PYTHON_PLUGINS="noisy")  # fmt: skip
    assert found == "quiet"
