"""Runs vLLM engines in separate processes and collects their answers."""

import json
import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Answer:
    """The tokens and the worker states of an engine."""

    tokens: list
    logprobs: list
    before: dict | None
    after: dict | None

    def calls(self):
        """Calls of each implementation in the worker during generation, from its status file."""
        earlier = self.before["implementations"]
        later = self.after["implementations"]
        counts = {name: calls - earlier.get(name, 0) for name, calls in later.items()}
        return {name: calls for name, calls in counts.items() if calls}

    def per_operator(self):
        """Calls during generation, by operator."""
        found = {}
        for name, calls in self.calls().items():
            operator = name.partition("/")[0]
            found[operator] = found.get(operator, 0) + calls
        return found

    def backends(self):
        """The backends that ran each operator."""
        found = {}
        for name in self.calls():
            operator, _, implementation = name.partition("/")
            found.setdefault(operator, set()).add(implementation.partition(".")[0])
        return found


def run_script(script, folder, request, more):
    """Runs a script on a request and returns its answer. Its processes keep their state in the
    folder."""
    asked, given = folder / "request.json", folder / "answer.json"
    asked.write_text(request)
    environment = {
        **os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
        "OPMUX_STATE_DIR": str(folder / "state"), **more,
    }  # fmt: skip
    path = pathlib.Path(script.__file__)
    done = subprocess.run(
        [sys.executable, path, asked, given], env=environment, capture_output=True, text=True
    )
    assert given.exists(), done.stdout[-3000:] + done.stderr[-5000:]
    return json.loads(given.read_text())
