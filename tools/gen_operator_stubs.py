#!/usr/bin/env python3
"""Writes python/opmux/_standard_operators.pyi: the signatures of the standard operators.

usage: gen_operator_stubs.py [--check]

Needs an opmux that can be imported; with --check it only says whether the file is up to date.
"""

from __future__ import annotations

import pathlib
import sys
import textwrap

import opmux
from opmux import _core

ROOT = pathlib.Path(__file__).parents[1]
FILE = ROOT / "python" / "opmux" / "_standard_operators.pyi"
HEAD = '''"""The standard operators for type checkers, made by tools/gen_operator_stubs.py."""

from typing import Any, Literal, Protocol, TypeVar

from ._core import Constant

class Tensor(Protocol):
    """Whatever can be read as a tensor: of numpy, torch, jax, cupy, or anything with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...

T = TypeVar("T", bound=Tensor)

class StandardOperators:
    """Operators by name. Others, defined by programs and plugins, are attributes too."""
'''
TAIL = """
    def __getattr__(self, name: str) -> Any: ...
"""


def type_of(argument: _core.ArgumentInfo, carries_type: bool) -> str:
    """The Python type of one input."""
    words = {"Tensor": "T" if carries_type else "Tensor", "Tensor[]": "list[Tensor]"}
    words["int[]"] = "list[int]"
    words["enum"] = "Literal[" + ", ".join(f'"{word}"' for word in argument.words) + "]"
    text = words.get(argument.type, argument.type)
    if argument.constant:
        text += " | Constant"
    if argument.optional and not argument.default_text:
        text += " | None"
    return text


def default_of(argument: _core.ArgumentInfo) -> str:
    """The default of an input that may be left out."""
    text = argument.default_text
    if not text:
        return "None"
    if argument.type == "bool":
        return {"true": "True", "false": "False"}[text]
    return f'"{text}"' if argument.type == "enum" else text


def parameters_of(inputs: list[_core.ArgumentInfo], outputs: int, carries: bool) -> list[str]:
    """The parameters; those in front of one that must be given have no default."""
    found = []
    for at, argument in enumerate(inputs):
        text = f"{argument.name}: {type_of(argument, carries and at == 0)}"
        if all(later.optional for later in inputs[at:]):
            text += f" = {default_of(argument)}"
        found.append(text)
    if outputs:
        one = "Tensor" if outputs == 1 else f"tuple[{', '.join(['Tensor'] * outputs)}]"
        found += ["*", f"out: {one} | None = None"]
    return found


def form_of(argument: _core.ArgumentInfo) -> list[bool]:
    """What of a shape shows in the type of an array: how many dimensions, and whether any."""
    return [dim == "..." for dim in argument.dims]


def is_like_the_first(inputs: list[_core.ArgumentInfo], outputs: list[_core.ArgumentInfo]) -> bool:
    """Whether the result has the type of the first argument: one tensor of as many dimensions."""
    return len(outputs) == 1 and form_of(outputs[0]) == form_of(inputs[0])


def result_of(outputs: int, carries: bool) -> str:
    """What a call returns: its outputs, tensors of the library of its first tensor."""
    if outputs == 0:
        return "None"
    if outputs == 1:
        return "T" if carries else "Any"
    return f"tuple[{', '.join(['Any'] * outputs)}]"


def docstring_of(info: opmux.OperatorInfo) -> str:
    """The operator's summary and its schema, within 100 columns."""
    summary = textwrap.fill(f'"""{info.summary}', 92)
    schema = textwrap.fill(info.schema, 92, subsequent_indent="    ", break_long_words=False)
    return textwrap.indent(f'{summary}\n\n{schema}\n"""', " " * 8)


def method_of(info: opmux.OperatorInfo) -> str:
    """One operator as a method."""
    arguments = _core.arguments(opmux.op(info.name))
    inputs = [argument for argument in arguments if not argument.output]
    outputs = [argument for argument in arguments if argument.output]
    carries = is_like_the_first(inputs, outputs)
    lines = ",\n        ".join(["self", *parameters_of(inputs, len(outputs), carries)])
    result = result_of(len(outputs), carries)
    head = f"    def {info.name}(\n        {lines},\n    ) -> {result}:"
    return f"\n{head}\n{docstring_of(info)}\n"


def standard() -> list[opmux.OperatorInfo]:
    """The operators of operators/, by name."""
    names = {file.stem for file in (ROOT / "operators").glob("*.schema")}
    return [info for info in opmux.list_operators() if info.name in names]


def main() -> int:
    text = HEAD + "".join(method_of(info) for info in standard()) + TAIL
    if "--check" in sys.argv[1:]:
        same = FILE.exists() and FILE.read_text() == text
        print(f"{FILE.name}: {'up to date' if same else 'run tools/gen_operator_stubs.py'}")
        return 0 if same else 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
