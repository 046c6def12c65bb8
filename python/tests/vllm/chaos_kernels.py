"""Correct kernels that inject a fault once a second while a file exists.

A plugin for OPMUX_PYTHON_PLUGINS. CHAOS_FILE names the file; each fault appends a line to it. With
CHAOS_GATE=corrupt, one kernel instead writes wrong results at every call; with CHAOS_GATE=die, it
crashes the process.
"""

import ctypes
import itertools
import os
import time

import torch

import opmux

STALL, BURST = 0.2, 6  # seconds; consecutive failures, one more than opens a breaker


class Schedule:
    """Decides which fault the next call injects."""

    def __init__(self, path):
        self.path, self.due, self.left = path, 0.0, 0
        self.kinds = itertools.cycle(("fail", "decline", "stall", "memory"))

    def fault(self):
        """The name of the fault that is due now; empty if none is."""
        if self.left:
            self.left -= 1
            return "fail"
        if time.monotonic() < self.due or not os.path.exists(self.path):
            return ""
        self.due = time.monotonic() + 1
        kind = next(self.kinds)
        self.left = BURST - 1 if kind == "fail" else 0
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(kind + "\n")
        return kind

    def strike(self):
        """Injects the fault that is due. Kernels call it before they write anything."""
        kind = self.fault()
        if kind == "fail":
            raise RuntimeError("chaos: a kernel fails")
        if kind == "decline":
            raise opmux.Declined("chaos: a kernel declines")
        if kind == "memory":
            raise opmux.ResourceExhausted("chaos: no memory")
        if kind == "stall":
            time.sleep(STALL)


def norm(x, weight, eps):
    """The RMS norm of f32 tensors."""
    scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return scaled if weight is None else scaled * weight


OPTIONS = {"priority": 900, "dtypes": ["f32"], "atomic_outputs": True}


def register_gate(runtime, how):
    """Registers a kernel that misbehaves in the same way at every call."""

    @opmux.implementation("silu_and_mul", "chaos.gate", runtime=runtime, **OPTIONS)
    def gate(x, *, out):
        armed = os.path.exists(os.environ["CHAOS_FILE"])
        if armed and how == "die":
            ctypes.string_at(0)  # a segmentation fault
        half = x.shape[-1] // 2
        torch.mul(torch.nn.functional.silu(x[..., :half]), x[..., half:], out=out)
        if armed and how == "corrupt":
            out *= 1.5


def register(runtime):
    """Registers the kernels with the highest priority."""
    always = os.environ.get("CHAOS_GATE", "")
    if always:
        register_gate(runtime, always)
        return
    schedules = [Schedule(os.environ["CHAOS_FILE"]) for _ in range(2)]
    options = {"runtime": runtime, **OPTIONS}

    @opmux.implementation("silu_and_mul", "chaos.gate", **options)
    def gate(x, *, out):
        schedules[0].strike()
        half = x.shape[-1] // 2
        torch.mul(torch.nn.functional.silu(x[..., :half]), x[..., half:], out=out)

    @opmux.implementation("fused_add_rms_norm", "chaos.norm", **options)
    def fused(x, residual, weight, eps, round_before_weight):
        schedules[1].strike()
        residual += x
        x.copy_(norm(residual, weight, eps))
