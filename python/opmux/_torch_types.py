"""Tells the extension which types of torch it may read by itself; imported once torch is."""

import sys

from . import _core

torch = sys.modules["torch"]
_core.learn_torch(torch.Tensor, torch.nn.Parameter, torch.is_grad_enabled)
