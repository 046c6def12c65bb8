"""torch functions as implementations: `NAME/torch.eager` and `NAME/torch.compiled`.

    import opmux.torch_backend

    opmux.torch_backend.register()
    with opmux.prefer("vendor:torch"):
        y = opmux.ops.rms_norm(x, w)     # torch.nn.functional.rms_norm

They have the kind `vendor` and the vendor `torch`. Their priority is below opmux's implementations,
so they run where a policy or a measurement chooses them. The first call of a compiled
implementation compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.dlpack

from .. import _core
from .._implementations import PythonImplementation, implementation
from . import _composites, _eager, _verifiers

__all__ = ["OPERATORS", "register"]

OPERATORS = (
    "attention",
    "embedding",
    "gelu_and_mul",
    "layer_norm",
    "linear",
    "matmul",
    "rms_norm",
    "silu_and_mul",
    "softmax",
)
"""The operators that torch has a function for."""

_EAGER_PRIORITY = 20
_COMPILED_PRIORITY = 10


def _tensor(value: Any) -> Any:
    """Converts a tensor of another library to a torch tensor; returns other values unchanged."""
    if isinstance(value, torch.Tensor) or not hasattr(value, "__dlpack__"):
        return value
    return torch.utils.dlpack.from_dlpack(value)


def _writing(function: Callable[..., Any]) -> Callable[..., None]:
    def run(*args: Any, out: Any) -> None:
        with torch.no_grad():
            _tensor(out).copy_(function(*map(_tensor, args)))

    return run


def _compiled(name: str) -> Callable[..., Any]:
    made: list[Callable[..., Any]] = []

    def run(*args: Any) -> Any:
        if not made:
            made.append(torch.compile(getattr(_composites, name), dynamic=True))
        return made[0](*args)

    return run


def _add(
    name: str, kind: str, function: Callable[..., Any], runtime: _core.Runtime | None
) -> PythonImplementation[..., None]:
    priority = _EAGER_PRIORITY if kind == "eager" else _COMPILED_PRIORITY
    made = implementation(
        name, f"torch.{kind}", kind="vendor", vendor="torch", priority=priority, runtime=runtime
    )(_writing(function))
    own = f"{name}_composite" if kind == "compiled" else name
    shared = name if kind == "eager" or name in ("linear", "matmul") else own
    verifier = getattr(_verifiers, shared, None)
    if verifier is not None:
        made.verifier(verifier)
    return made


def register(
    runtime: _core.Runtime | None = None, *, compiled: bool = True
) -> list[PythonImplementation[..., None]]:
    """Adds torch's functions to a runtime, by default the default runtime. Returns the added
    implementations, each of which has `withdraw()`. `compiled=False` omits the compiled ones."""
    added = []
    for name in OPERATORS:
        added.append(_add(name, "eager", getattr(_eager, name), runtime))
        if compiled:
            added.append(_add(name, "compiled", _compiled(name), runtime))
    return added
