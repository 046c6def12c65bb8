"""opmux inside vLLM: installed beside it, opmux is its plugin; nothing has to be imported.

    llm = LLM("...")                                      # norms, activations, rotary embeddings,
    llm.generate(...)                                     # linear layers and attention are opmux's
    print(llm.collective_rpc("opmux_state"))              # what each worker runs, and how often

`LLM(..., additional_config={"opmux": {"kinds": ["norm", "rotary"], "exact": True}})` takes over
less, and rounds where vLLM rounds. `OPMUX_DISABLE=1` leaves vLLM as it is.
"""

from __future__ import annotations

from ._plugin import register
from ._settings import KINDS, Settings

__all__ = ["KINDS", "register", "Settings"]
