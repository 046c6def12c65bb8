"""opmux inside vLLM. If both are installed, vLLM loads opmux as a plugin; nothing has to be
imported.

    llm = LLM("...")                             # opmux runs norms, activations, rotary embeddings,
    llm.generate(...)                            # linear layers and attention
    print(llm.collective_rpc("opmux_state"))     # each worker's report and call counters

`LLM(..., additional_config={"opmux": {"kinds": ["norm", "rotary"], "exact": True}})` replaces fewer
layers, and rounds where vLLM rounds. `OPMUX_DISABLE=1` leaves vLLM unchanged.

On platforms other than the CPU, opmux runs the norms, activations, rotary embeddings and experts
for which an implementation can run on the platform's device.
"""

from __future__ import annotations

from ._plugin import register
from ._settings import KINDS, Settings

__all__ = ["KINDS", "register", "Settings"]
