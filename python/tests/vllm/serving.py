"""`vllm serve` with opmux, and requests to it."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import engine_run

import opmux


def free_port():
    """A free TCP port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Server:
    """A server that runs until the block ends; its processes keep their state in a folder."""

    def __init__(self, model, folder, **environment):
        self.model, self.folder, self.port = str(model), folder, free_port()
        self.state = str(folder / "state")
        self.environment = {
            **os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
            "OPMUX_STATE_DIR": self.state, **environment,
        }  # fmt: skip

    def __enter__(self):
        # Runs the module behind `vllm serve`, because that command looks up a package name that the
        # CPU build of vLLM does not have.
        command = [
            sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", self.model,
            "--dtype", "float32", "--enforce-eager", "--max-model-len", "256", "--host",
            "127.0.0.1", "--port", str(self.port), "--seed", "0", "--disable-log-stats",
        ]  # fmt: skip
        self.log = (self.folder / "serve.log").open("w")
        self.process = subprocess.Popen(
            command, env=self.environment, stdout=self.log, stderr=subprocess.STDOUT
        )
        end = time.monotonic() + 10 * engine_run.SECONDS
        while not self.healthy():
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.5)
        return self

    def __exit__(self, *rest):
        self.process.terminate()
        self.process.wait(engine_run.SECONDS)
        self.log.close()

    def said(self):
        """The end of the server's log."""
        return (self.folder / "serve.log").read_text()[-4000:]

    def healthy(self):
        """Whether the server answers."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def ask(self, prompt, tokens):
        """Returns greedy tokens; None if the request failed."""
        body = {
            "model": self.model, "prompt": prompt, "max_tokens": tokens, "temperature": 0,
            "ignore_eos": True, "return_token_ids": True,
        }  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(
                "POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            text = answer.read()
            return json.loads(text)["choices"][0]["token_ids"] if answer.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def ask_many(self, prompts, tokens, at_a_time=16):
        """Asks many prompts concurrently; returns the answers in the order of the prompts."""
        with ThreadPoolExecutor(at_a_time) as pool:
            return list(pool.map(lambda prompt: self.ask(prompt, tokens), prompts))

    def worker(self):
        """The runtime of the process with the most calls."""
        runtimes = [r for p in opmux.process_states(self.state) for r in p.runtimes]
        return max(runtimes, key=lambda r: sum(op.calls for op in r.operators))


class Watch(threading.Thread):
    """Collects the breakers that appear in the worker's status file."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.ended, self.seen = server, threading.Event(), set()

    def run(self):
        while not self.ended.wait(0.05):
            found = self.server.worker().breakers
            self.seen.update((breaker.implementation, breaker.state) for breaker in found)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *rest):
        self.ended.set()
        self.join()
