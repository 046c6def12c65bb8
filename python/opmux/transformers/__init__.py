"""opmux in Hugging Face models.

    import opmux.transformers

    done = opmux.transformers.use(model)     # norms, gated layers, rotary embeddings, attention
    print(done)                              # lists the modules replaced and kept, with reasons
    done.undo()

`with opmux.transformers.use(model):` undoes it at the end of the block. To use only the attention,
import this module and call
`AutoModelForCausalLM.from_pretrained(path, attn_implementation="opmux")`.
"""

from __future__ import annotations

from .. import torch as _torch  # noqa: F401  # compiled models need the operators in torch
from ._attention import attention
from ._attention import register as _register
from ._use import Use, use

__all__ = ["Use", "attention", "use"]

_register()
