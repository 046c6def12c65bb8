"""Allocates outputs as tensors of the library that the inputs belong to."""

from __future__ import annotations

import functools
import sys
from typing import Any

from . import _core
from ._errors import Unsupported

_TORCH_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool",
    "f8_e4m3fn": "float8_e4m3fn", "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2": "float8_e5m2",
    "f8_e5m2fnuz": "float8_e5m2fnuz", "f4_e2m1fn_x2": "float4_e2m1fn_x2",
}  # fmt: skip


@functools.cache
def _torch_dtype(name: str) -> Any:
    torch = sys.modules["torch"]
    if not hasattr(torch, _TORCH_NAMES.get(name, "")):
        raise Unsupported(f"torch has no dtype for {name}", "python.dtype")
    return getattr(torch, _TORCH_NAMES[name])


def _numpy_dtype(name: str) -> Any:
    if name.startswith(("bf", "f8", "f4")) or name not in _TORCH_NAMES:
        raise Unsupported(f"numpy has no dtype for {name}: pass out=", "python.dtype")
    return _TORCH_NAMES[name]


def _is_torch(like: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(like, torch.Tensor)


def allocate(like: Any, shape: tuple[int, ...], dtype: str, device: int, index: int) -> Any:
    """Returns a new tensor of the library of `like`, for an output that the caller did not pass."""
    if _is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=_torch_dtype(dtype), device=like.device)
    module = type(like).__module__.partition(".")[0]
    if module == "numpy" or like is None:
        import numpy

        return numpy.empty(shape, dtype=_numpy_dtype(dtype))
    if module == "cupy":
        return sys.modules["cupy"].empty(shape, dtype=_numpy_dtype(dtype))
    raise Unsupported(f"opmux cannot allocate tensors of {module}: pass out=", "python.allocate")


def adopt(borrowed: Any) -> Any:
    """Converts a tensor lent by a C++ caller to a torch tensor, or to a numpy array if torch is not
    imported."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.from_dlpack(borrowed)
    import numpy

    return numpy.from_dlpack(borrowed)


_core.set_allocate_hook(allocate)
_core.set_adopt_hook(adopt)
