"""Converts an operator's schema to the syntax of torch.library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _core

_TYPES = {
    "Tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "enum": "str",
    "str": "str", "int[]": "SymInt[]", "Tensor[]": "Tensor[]",
}  # fmt: skip


def torch_name(operator: str) -> str:
    """Returns the name in `torch.ops.opmux`. Vendor operators contain a dot, which torch
    rejects."""
    return operator.replace(".", "__")


def default_of(argument: _core.ArgumentInfo) -> Any:
    """Returns the default value of an argument."""
    text = argument.default_text
    if not text:
        return None
    if argument.type == "bool":
        return text == "true"
    if argument.type == "int":
        return int(text)
    return float(text) if argument.type == "float" else text


def _written(argument: _core.ArgumentInfo) -> str:
    value = default_of(argument)
    return f'"{value}"' if isinstance(value, str) else repr(value)


class _Aliases:
    """Assigns an alias letter to each argument that is written to."""

    def __init__(self) -> None:
        self._letters = iter("abcdefghijklmnopqrstuvwxyz")

    def type_of(self, argument: _core.ArgumentInfo) -> str:
        alias = f"({next(self._letters)}!)" if argument.updated or argument.output else ""
        base, brackets, rest = _TYPES[argument.type].partition("[")
        option = "?" if argument.optional and _written(argument) == "None" else ""
        return f"{base}{alias}{brackets}{rest}{option}"


@dataclass(frozen=True)
class TorchSchema:
    """An operator's name and arguments, for torch.library."""

    name: str
    inputs: tuple[_core.ArgumentInfo, ...]
    outputs: tuple[_core.ArgumentInfo, ...]

    @staticmethod
    def of(operator: _core.Operator) -> TorchSchema:
        arguments = _core.arguments(operator)
        inputs = tuple(a for a in arguments if not a.output)
        return TorchSchema(operator.name, inputs, tuple(a for a in arguments if a.output))

    @property
    def made(self) -> tuple[_core.ArgumentInfo, ...]:
        """The outputs that a call without `out=` allocates and returns."""
        return tuple(a for a in self.outputs if not a.optional)

    def out_names(self) -> tuple[str, ...]:
        """Returns the names of the outputs in the `out` overload."""
        return ("out",) if len(self.outputs) == 1 else tuple(a.name for a in self.outputs)

    def _inputs(self, aliases: _Aliases) -> list[str]:
        required = [i for i, a in enumerate(self.inputs) if not a.optional]
        last = required[-1] if required else -1
        texts = []
        for i, argument in enumerate(self.inputs):
            default = f"={_written(argument)}" if i > last else ""
            texts.append(f"{aliases.type_of(argument)} {argument.name}{default}")
        return texts

    def functional(self) -> str:
        """Returns the overload that returns new tensors. In-place operators have only this one."""
        returns = ["Tensor"] * len(self.made)
        result = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        return f"{torch_name(self.name)}({', '.join(self._inputs(_Aliases()))}) -> {result}"

    def out(self) -> str:
        """Returns the overload that writes to the tensors passed by the caller."""
        aliases = _Aliases()
        texts = [*self._inputs(aliases), "*"]
        for name, argument in zip(self.out_names(), self.outputs, strict=True):
            default = "=None" if argument.optional else ""
            texts.append(f"{aliases.type_of(argument)} {name}{default}")
        return f"{torch_name(self.name)}.out({', '.join(texts)}) -> ()"
