"""opmux inside torch: import this module once to use `opmux.ops` in compiled and exported code.

    import torch, opmux, opmux.torch

    @torch.compile(fullgraph=True)
    def block(x, w):
        return opmux.ops.rms_norm(x, w) + 1

Every operator is also registered as `torch.ops.opmux.NAME`, with an overload that writes to `out=`.
Calls outside of compiled code do not get slower. `rms_norm`, `silu_and_mul`, `linear` and `softmax`
have derivatives; other operators refuse tensors that require grad.

`python -m opmux.torch build` compiles a native reader for torch tensors that makes calls faster.
"""

from __future__ import annotations

import torch as _torch  # noqa: F401  # _torch_types looks it up in sys.modules

from .. import _torch_types as _torch_types
from ._register import follow_functions as _follow_functions
from ._register import register, register_all, reroute

__all__ = ["register", "register_all", "reroute"]

register_all()
_follow_functions()
