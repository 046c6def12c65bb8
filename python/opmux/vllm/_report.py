"""Reports which layers of a model run on opmux, which do not, and why. Logged once per loaded
model."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from logging import getLogger
from typing import Any

from .._information import stats
from .._runtime import default_runtime
from . import _devices, _norms, _stand_ins
from ._settings import Settings

_NORMS = ("RMSNorm", "GemmaRMSNorm")
_UNSEEN = {"ApplyRotaryEmb"}  # parts of layers that the report already counts


@dataclass
class Report:
    """Calls per step of a model's layers by operator, and the layers that vLLM keeps."""

    calls: Counter[str] = field(default_factory=Counter)
    operators: set[str] = field(default_factory=set)
    left: dict[str, str] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    """Numbers of rows for which vLLM's kernel runs in layers that opmux replaces."""

    def add(self, module: Any, reason: str, *operators: str, calls: int = 1) -> None:
        """Adds a layer that calls these operators, or the reason why it does not."""
        if reason:
            self.left.setdefault(type(module).__name__.removeprefix("Opmux"), reason)
        else:
            self.operators.update(operators)
            self.calls["/".join(operators)] += calls

    def __str__(self) -> str:
        kinds = len(self.operators) + len(self.left)
        calls = sum(self.calls.values())
        text = f"opmux: {len(self.operators)} of {kinds} operator kinds, {calls} calls per step"
        if self.left:
            text += "; not: " + "; ".join(f"{a}, because {b}" for a, b in self.left.items())
        for name, rows in self.shared.items():
            text += f"; vLLM's kernel in {name} for {rows} rows, where it was measured to be faster"
        return text


def _look_at(report: Report, name: str, module: Any, settings: Settings) -> None:
    kind = type(module).__name__
    if kind in _NORMS:
        reason = _norms.reason_against(module, settings)
        report.add(module, reason, *([] if reason else _norms.taken()))
    elif kind == "VocabParallelEmbedding" and not name.endswith("lm_head"):
        report.add(module, "vLLM has no hook for it")
    elif hasattr(module, "opmux_operator"):
        report.add(module, module.opmux_reason, module.opmux_operator)
    elif hasattr(module, "cpu_linear"):
        report.add(module, getattr(module, "opmux_reason", "vLLM gave it another GEMM"), "linear")
        if hasattr(module, "opmux_shared"):
            report.shared[kind] = module.opmux_shared
    elif hasattr(impl := getattr(module, "impl", module), "opmux_reason"):
        report.add(module, impl.opmux_reason, "paged_attention", "reshape_and_cache", calls=2)
    elif not _devices.on_cpu() and (left := _kind_of_the_cpu(module)):
        report.add(module, settings.reason_against(left))
    elif kind not in _UNSEEN and isinstance(module, _custom_op()):
        report.add(module, "opmux has no operator for it")
    router: Any = getattr(module, "router", None)
    if hasattr(router, "opmux_reason"):
        report.add(router, router.opmux_reason, "topk_softmax")


def _kind_of_the_cpu(module: Any) -> str:
    """Returns the kind of a layer that opmux replaces only on the CPU; empty for others."""
    layers = "vllm.model_executor.layers"
    linear: Any = import_module(f"{layers}.linear").LinearBase
    head: Any = import_module(f"{layers}.vocab_parallel_embedding").ParallelLMHead
    attention: Any = import_module(f"{layers}.attention_layer_base").AttentionLayerBase
    if isinstance(module, linear | head):
        return "linear"
    return "attention" if isinstance(module, attention) else ""


def _custom_op() -> Any:
    return import_module("vllm.model_executor.custom_op").CustomOp


def look_at(model: Any, settings: Settings) -> Report:
    """Makes the report of a model. A layer that is used in several places counts once for each."""
    report = Report()
    for name, module in model.named_modules(remove_duplicate=False):
        _look_at(report, name, module, settings)
    report.left["Sampler"] = "it is not a layer of the model"
    return report


_latest = Report()


def worker_state(worker: Any) -> dict[str, Any]:
    """For `LLM.collective_rpc("opmux_state")`: this worker's report and its call counters."""
    found = stats()
    return {
        "pid": os.getpid(),
        "summary": str(_latest),
        "calls_per_step": dict(_latest.calls),
        "left": dict(_latest.left),
        "shared": dict(_latest.shared),
        "implementations": {s.implementation: s.calls for s in found if s.calls},
        "not_ok": {s.implementation: s.failed + s.declined for s in found if s.failed + s.declined},
    }


def worker_reload_tuning(worker: Any) -> list[dict[str, Any]]:
    """For `LLM.collective_rpc("opmux_reload_tuning")`: lets this worker use the bundles of measured
    speeds that exist now. Returns them with the number of their rows, and of those that hold."""
    runtime = default_runtime()
    runtime.reload_tuning()
    runtime.check_tuning()
    return [
        {"path": found.path, "problem": found.problem, "rows": found.rows, "used": found.used}
        for found in runtime.tuning()
    ]


def hook() -> None:
    """Makes vLLM report on each model that it loads, and adds functions to its workers."""
    loader = import_module("vllm.model_executor.model_loader.base_loader").BaseModelLoader
    original = loader.load_model

    @wraps(original)
    def load_model(self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> Any:
        global _latest
        settings = Settings.read(vllm_config)
        _devices.start(getattr(vllm_config, "model_config", None))
        if _devices.on_cpu() and settings.exact and "norm" in settings.kinds:
            _norms.offer_eager()
        model = original(self, vllm_config, *args, **kwargs)
        if _devices.on_cpu() and settings.exact:
            _stand_ins.return_inexact(model, vllm_config.model_config.dtype)
        _latest = look_at(model, settings)
        getLogger("vllm.opmux").info("%s", _latest)
        return model

    loader.load_model = load_model
    worker: Any = import_module("vllm.v1.worker.worker_base").WorkerBase
    worker.opmux_state = worker_state
    worker.opmux_reload_tuning = worker_reload_tuning
