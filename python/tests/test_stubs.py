"""The stubs match the extension and the operators."""

import ast
import pathlib
import subprocess
import sys

import pytest

import opmux
from opmux import _core

PACKAGE = pathlib.Path(opmux.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Attributes that every object has, and those that the stub omits.
COMMON = set(dir(object)) | {"__module__", "__doc__", "__dict__", "__weakref__"}
UNTOLD = COMMON | {"__vectorcalloffset__", "__new__", "__nb_signature__"}
UNTOLD |= {"__dictoffset__", "__weaklistoffset__"}


def declared(body):
    """The names that a module or class of a stub declares."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names


STUB = ast.parse((PACKAGE / "_core.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def test_the_stub_declares_what_the_extension_has():
    assert declared(STUB.body) - COMMON == {n for n in dir(_core) if n[0] != "_"} | {"__version__"}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_stub_of_a_class_declares_its_members(name):
    members = set(vars(getattr(_core, name))) - UNTOLD
    assert declared(CLASSES[name].body) - UNTOLD == members


def test_the_stub_of_the_operators_is_that_of_their_schemas():
    tool = ROOT / "tools" / "gen_operator_stubs.py"
    ran = subprocess.run([sys.executable, "-B", tool, "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_operator_has_a_signature():
    stub = ast.parse((PACKAGE / "_standard_operators.pyi").read_text())
    found = next(n for n in stub.body if isinstance(n, ast.ClassDef) and n.name != "Tensor")
    names = {file.stem for file in (ROOT / "operators").glob("*/*.schema")}
    assert declared(found.body) - {"__getattr__"} == names
    assert names <= {info.name for info in opmux.list_operators()}


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
