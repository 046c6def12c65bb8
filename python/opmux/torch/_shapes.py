"""Infers output shapes from a schema's dimensions and conditions, also for symbolic sizes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import _core
from .._errors import InvalidArgument

Dims = dict[str, Any]


class _NotLinear(Exception):
    """The expression is not linear in the unknown dimension."""


def _multiply(left: tuple[int, Any], right: tuple[int, Any]) -> tuple[int, Any]:
    if left[0] and right[0]:
        raise _NotLinear
    if right[0]:
        left, right = right, left
    if left[0] and not isinstance(right[1], int):
        raise _NotLinear
    return left[0] * right[1], left[1] * right[1]


def _linear(node: ast.expr, dims: Dims, unknown: str) -> tuple[int, Any]:
    """Returns (k, c) such that the expression equals k * unknown + c."""
    match node:
        case ast.Constant(value=int() as value):
            return 0, value
        case ast.Name(id=name) if name == unknown:
            return 1, 0
        case ast.Name(id=name) if name in dims:
            return 0, dims[name]
        case ast.BinOp(left=a, op=operation, right=b):
            left, right = _linear(a, dims, unknown), _linear(b, dims, unknown)
            match operation:
                case ast.Add():
                    return left[0] + right[0], left[1] + right[1]
                case ast.Sub():
                    return left[0] - right[0], left[1] - right[1]
                case ast.Mult():
                    return _multiply(left, right)
                case ast.Div() if not left[0] and not right[0]:
                    return 0, left[1] // right[1]
                case ast.Mod() if not left[0] and not right[0]:
                    return 0, left[1] % right[1]
    raise _NotLinear


def equalities(schema: str) -> list[ast.Compare]:
    """Returns those conditions of a schema that are equalities."""
    _, _, conditions = schema.partition(") where ")
    found = []
    for text in conditions.split("&&"):
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:  # other forms of conditions do not determine a dimension
            continue
        if isinstance(node, ast.Compare) and [type(o) for o in node.ops] == [ast.Eq]:
            found.append(node)
    return found


class Inference:
    """Infers an operator's outputs by the same rules as the engine."""

    def __init__(self, operator: _core.Operator) -> None:
        self._name = operator.name
        arguments = _core.arguments(operator)
        self._read = [a for a in arguments if not a.output and a.type == "Tensor"]
        self._made = [a for a in arguments if a.output and not a.optional]
        self._equalities = equalities(operator.schema)

    def possible(self) -> bool:
        """Returns whether the inputs determine the shape of every output."""
        named = {d for a in self._read for d in a.dims}
        dims: Dims = {d: 2 for d in named if d != "..."}
        self._solve(dims)
        known = {*dims, *named}
        return all(
            a.type == "Tensor" and all(d in known or d.isdigit() for d in a.dims)
            if not a.any_shape
            else bool(a.may_alias)
            for a in self._made
        )

    def outputs(self, tensors: Mapping[str, Any]) -> list[torch.Tensor]:
        """Returns new tensors for the outputs of a call with these tensors, given by argument."""
        dims, leading = self._bind(tensors)
        self._solve(dims)
        return [self._empty(output, tensors, dims, leading) for output in self._made]

    def check(self, tensors: Mapping[str, Any]) -> None:
        """Raises if the shapes contradict each other."""
        self._bind(tensors)

    def _bind(self, tensors: Mapping[str, Any]) -> tuple[Dims, Sequence[Any]]:
        dims: Dims = {}
        leading: Sequence[Any] | None = None
        for argument in self._read:
            tensor = tensors.get(argument.name)
            if tensor is None or argument.any_shape:
                continue
            names = [d for d in argument.dims if d != "..."]
            shape = tuple(tensor.shape)
            wrong = len(shape) < len(names) if "..." in argument.dims else len(shape) != len(names)
            if wrong:
                raise InvalidArgument(
                    f"{self._name}: '{argument.name}' has {len(shape)} dimensions, "
                    f"expected [{', '.join(argument.dims)}]",
                    "schema.rank",
                )
            rest = shape[: len(shape) - len(names)]
            if "..." in argument.dims:
                leading = self._agree("...", argument, leading, rest)
            for name, size in zip(names, shape[len(rest) :], strict=True):
                known = int(name) if name.isdigit() else dims.get(name)
                dims[name] = self._agree(name, argument, known, size)
        return dims, leading or ()

    def _agree(self, dim: str, argument: _core.ArgumentInfo, known: Any, size: Any) -> Any:
        if known is None:
            return size
        if dim == "..." and len(known) != len(size):
            raise self._mismatch(dim, argument, known, size)
        pairs = zip(known, size, strict=True) if dim == "..." else [(known, size)]
        for one, other in pairs:
            if isinstance(one, int) and isinstance(other, int):
                if one != other:
                    raise self._mismatch(dim, argument, known, size)
            else:
                torch._check(one == other)  # type: ignore[no-untyped-call]
        return known

    def _mismatch(
        self, dim: str, argument: _core.ArgumentInfo, known: Any, size: Any
    ) -> InvalidArgument:
        text = f"{self._name}: {dim} is {known} but {size} in '{argument.name}'"
        return InvalidArgument(text, "schema.dim_mismatch")

    def _solve(self, dims: Dims) -> None:
        for _ in self._equalities:
            for condition in self._equalities:
                names = {n.id for n in ast.walk(condition) if isinstance(n, ast.Name)}
                unknown = [name for name in names if name not in dims]
                if len(unknown) == 1:
                    self._solve_one(condition, dims, unknown[0])

    @staticmethod
    def _solve_one(condition: ast.Compare, dims: Dims, unknown: str) -> None:
        try:
            left = _linear(condition.left, dims, unknown)
            right = _linear(condition.comparators[0], dims, unknown)
        except _NotLinear:
            return
        slope, rest = left[0] - right[0], right[1] - left[1]
        if slope < 0:
            slope, rest = -slope, -rest
        if slope:
            dims[unknown] = rest // slope

    def _empty(
        self, output: _core.ArgumentInfo, tensors: Mapping[str, Any], dims: Dims, leading: Any
    ) -> torch.Tensor:
        given = [a for a in self._read if tensors.get(a.name) is not None]
        if not given:
            raise InvalidArgument(f"{self._name}: no tensor was passed", "schema.not_inferable")
        variable = output.dtype_variable
        tied = [a for a in given if variable and a.dtype_variable == variable]
        like = tensors[(tied or given)[0].name]
        if output.any_shape:
            return torch.empty_like(
                tensors[output.may_alias], memory_format=torch.contiguous_format
            )
        shape = list(leading) if "..." in output.dims else []
        for name in output.dims:
            if name != "...":
                shape.append(int(name) if name.isdigit() else dims[name])
        dtype = torch.int64 if output.integer else like.dtype
        return torch.empty(shape, dtype=dtype, device=like.device)
