"""Generates with one vLLM engine while its policy file changes: reload_run.py REQUEST ANSWER."""

import hashlib
import json
import os
import pathlib
import sys
import threading
import time

import engine_run

# Each round denies one of two valid implementations of `linear` and changes nothing else.
POLICY = """opmux: 1
rules:
  - {{name: round-{round}, op: linear, deny: ["linear/{denied}.*"]}}
"""


class Changes(threading.Thread):
    """Replaces the file and waits until every process with a status file has loaded it."""

    def __init__(self, path, count):
        super().__init__(daemon=True)
        self.path, self.count = pathlib.Path(path), count
        self.seconds, self.processes, self.problem = [], set(), ""

    def run(self):
        try:
            for number in range(self.count):
                self.seconds.append(self.change(number))
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"

    def change(self, number):
        """Replaces the file once; returns the seconds until the last process has loaded it."""
        text = POLICY.format(round=number, denied=("onednn", "simd")[number % 2])
        aside = self.path.with_suffix(".new")
        aside.write_text(text)
        start = time.monotonic()
        aside.rename(self.path)
        self.wait_for(hashlib.sha256(text.encode()).hexdigest(), start)
        return time.monotonic() - start

    def wait_for(self, digest, start):
        import opmux

        while True:
            found = opmux.process_states()
            self.processes.update(process.pid for process in found)
            behind = [r for p in found for r in p.runtimes if r.policy_digest != digest]
            if found and not behind:
                return
            if time.monotonic() > start + engine_run.SECONDS:
                raise AssertionError(f"{behind[0].policy_name} stays {behind[0].policy_digest}")
            time.sleep(0.01)


def run(request):
    """Returns the tokens of every round, and how long the processes took to load each file."""
    from vllm import LLM, SamplingParams

    llm = LLM(seed=0, max_model_len=256, disable_log_stats=True, **request["engine"])
    sampling = SamplingParams(temperature=0, max_tokens=request["tokens"], ignore_eos=True)
    prompts = list(engine_run.PROMPTS)
    answers = []

    def generate():
        outputs = llm.generate(prompts, sampling, use_tqdm=False)
        answers.append([list(o.outputs[0].token_ids) for o in outputs])

    generate()
    before = engine_run.state(llm)
    changes = Changes(os.environ["OPMUX_CONFIG"], request["changes"])
    changes.start()
    while changes.is_alive():
        generate()
    return {
        "rounds": answers, "seconds": changes.seconds, "problem": changes.problem,
        "processes": len(changes.processes), "before": before, "after": engine_run.state(llm),
    }  # fmt: skip


if __name__ == "__main__":
    answer = run(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    pathlib.Path(sys.argv[2]).write_text(json.dumps(answer))
