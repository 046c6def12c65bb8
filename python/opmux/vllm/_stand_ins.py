"""Replacement classes for vLLM's activations and rotary embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import MethodType
from typing import Any

import torch

from .. import ops
from . import _devices
from ._settings import Settings

Forward = Callable[..., Any]


def silu_and_mul(self: Any, x: torch.Tensor) -> Any:
    return ops.silu_and_mul(x)


def gelu_and_mul(self: Any, x: torch.Tensor) -> Any:
    return ops.gelu_and_mul(x, self.approximate)


def _rounded_between(activation: Forward) -> Forward:
    """Rounds the activated half before the multiplication, as vLLM's eager code does."""

    def forward(self: Any, x: torch.Tensor) -> Any:
        half = x.shape[-1] // 2
        alone = x.clone()
        alone[..., half:] = 1
        return activation(self, alone) * x[..., half:]

    forward.__name__ = activation.__name__
    return forward


EXACT = {one: _rounded_between(one) for one in (silu_and_mul, gelu_and_mul)}


def rotary_embedding(
    self: Any, positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor | None = None
) -> Any:
    """Rotates in place: queries and keys are slices of the output of one linear layer."""
    rows = positions.flatten()
    q = query.view(rows.shape[0], -1, self.head_size)
    k = None if key is None else key.view(rows.shape[0], -1, self.head_size)
    table = self._match_cos_sin_cache_dtype(query)
    ops.rotary_embedding(q, k, rows, table, "neox" if self.is_neox_style else "gptj")
    return query, key


def _activation_samples(layer: Any, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return (torch.randn(64, 256).to(dtype),)


def _rotary_samples(layer: Any, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    queries, keys = (torch.randn(64, heads * layer.head_size).to(dtype) for heads in (4, 2))
    return torch.arange(64) % layer.max_position_embeddings, queries, keys


_SAMPLES = {"activation": _activation_samples, "rotary": _rotary_samples}


def _results(forward: Forward, samples: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    results = forward(*(sample.clone() for sample in samples))
    return [results] if isinstance(results, torch.Tensor) else list(results)


def _difference(layer: Any, kind: str, dtype: torch.dtype) -> str:
    """Returns how the layer's results on samples differ from those of vLLM's eager layer; empty if
    all values are the same."""
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        samples = _SAMPLES[kind](layer, dtype)
        pairs = zip(
            _results(layer.forward_cpu, samples), _results(layer.forward, samples), strict=True
        )
        same = torch.cat([(theirs == ours).flatten() for theirs, ours in pairs])
    different = same.numel() - int(same.sum())
    if not different:
        return ""
    return f"vLLM's kernel rounds {different} of {same.numel()} sample values differently"


def _reason_against_exact(layer: Any, kind: str, dtype: torch.dtype) -> str:
    try:
        return _difference(layer, kind, dtype)
    except Exception as error:  # a layer with other arguments than those of this version of vLLM
        return f"it could not be compared with vLLM's layer: {type(error).__name__}: {error}"


def return_inexact(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """Returns to vLLM the activations and rotary embeddings of a loaded model whose results are not
    the same as vLLM's on this processor, or that cannot be compared. vLLM's kernels truncate bf16
    results where the processor has no bf16 instructions."""
    layers: Iterator[Any] = model.modules()
    for layer in layers:
        kind = getattr(layer, "opmux_kind", "")
        if kind and not layer.opmux_reason:
            layer.opmux_reason = _reason_against_exact(layer, kind, dtype)
            if layer.opmux_reason:
                layer._forward_method = layer.opmux_replaced


def _stand_in(base: Any, kind: str, forward: Forward) -> type:
    def dispatch_forward(self: Any, compile_native: bool) -> Any:
        settings = Settings.current()
        reason = settings.reason_against(kind) or _devices.reason_against(forward.__name__)
        self.opmux_reason = reason
        if reason or settings.exact:
            self.opmux_replaced = base.dispatch_forward(self, compile_native)
        if reason:
            return self.opmux_replaced
        return MethodType(EXACT.get(forward, forward) if settings.exact else forward, self)

    members = {"dispatch_forward": dispatch_forward, "opmux_operator": forward.__name__}
    members |= {"opmux_kind": kind, "__module__": __name__}
    return type(f"Opmux{base.__name__}", (base,), members)


def _rotary_classes() -> Iterator[Any]:
    """Yields the classes that apply the angles with the base class's methods. They may differ in
    how they compute the angles."""
    found = import_module("vllm.model_executor.layers.rotary_embedding")
    common = found.RotaryEmbedding
    methods = ("forward", "forward_native", "forward_cpu", "_match_cos_sin_cache_dtype")
    for one in vars(found).values():
        if not isinstance(one, type) or not issubclass(one, common):
            continue
        if all(getattr(one, name) is getattr(common, name) for name in methods):
            yield one


def _bases() -> Iterator[tuple[Any, str, Forward]]:
    activation = import_module("vllm.model_executor.layers.activation")
    yield activation.SiluAndMul, "activation", silu_and_mul
    yield activation.GeluAndMul, "activation", gelu_and_mul
    for one in _rotary_classes():
        yield one, "rotary", rotary_embedding


def hook() -> None:
    """Registers the replacement classes with vLLM."""
    taken = import_module("vllm.model_executor.custom_op").op_registry_oot
    for base, kind, forward in _bases():
        if base.__name__ not in taken:  # unless another plugin registered a class
            base.register_oot(_stand_in(base, kind, forward))
