"""Registers torch's tensor types with the extension. The extension imports this module once torch
is imported."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import _core, _torch_reader
from ._runtime import share_threads_with_torch


def _reroute(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Sends a call through torch.ops, for subclasses, fake tensors and tensors that require
    grad."""
    from .torch import reroute

    return reroute(name, args, kwargs)


torch = sys.modules["torch"]
_modes = importlib.import_module("torch.utils._python_dispatch")
_core.learn_torch(
    torch.Tensor,
    torch.nn.Parameter,
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    vars(_modes),
    torch._C._len_torch_dispatch_stack,
    torch._C._get_deterministic_algorithms,
    torch._C._is_any_autocast_enabled,
    torch._C._cuda_isCurrentStreamCapturing if torch.backends.cuda.is_built() else None,
)
_core.set_reroute_hook(_reroute)
share_threads_with_torch()
not_used_because = _torch_reader.use()
"""The reason why the torch reader is not used; empty if it is used."""
