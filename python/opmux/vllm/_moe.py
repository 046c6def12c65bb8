"""Mixtures of experts with unquantized weights: the routing and the experts."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

import torch

from .. import ops
from . import _devices
from ._settings import Settings

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_ACTIVATIONS = ("silu", "gelu", "gelu_tanh")
_CLAMPS = ("swiglu_alpha", "swiglu_beta", "swiglu_limit")
_OTHER_ROUTING = ("use_grouped_topk", "custom_routing_function")
_ROUTED = (torch.float32, torch.int32)
_LAYERS = "vllm.model_executor.layers.fused_moe"


def reason_against(layer: Any, settings: Settings) -> str:
    """Returns why vLLM keeps a layer's experts; empty if opmux takes them."""
    weight = layer.w13_weight
    if weight.is_meta or weight.dtype not in _FLOATS:
        return f"its weights are {'on the meta device' if weight.is_meta else weight.dtype}"
    if layer.activation.value not in _ACTIVATIONS:
        return f"opmux has no experts with activation {layer.activation.value}"
    if hasattr(layer, "w13_bias") or any(getattr(layer, c, None) is not None for c in _CLAMPS):
        return "its experts have biases or SwiGLU limits"
    if layer.expert_map is not None:
        return "its experts are distributed over processes"
    if layer.apply_router_weight_on_input:
        return "it applies the router weights to the inputs"
    if settings.exact:
        return "vLLM sums in a different order than opmux"
    return settings.reason_against("moe") or _devices.reason_against(
        "fused_moe", weight.dtype, lambda: _expert_samples(layer)
    )


def _expert_samples(layer: Any) -> _devices.Samples:
    weight = layer.w13_weight
    return {
        "x": weight.new_zeros(1, weight.shape[-1]), "w1": weight, "w2": layer.w2_weight,
        "topk_weights": weight.new_zeros(1, 1, dtype=torch.float32),
        "topk_ids": weight.new_zeros(1, 1, dtype=torch.int32),
        "activation": layer.activation.value,
    }  # fmt: skip


def _experts(base: Any) -> type:
    """Returns the class that replaces vLLM's method class for experts."""

    def is_monolithic(self: Any) -> bool:
        """Whether vLLM's kernel also routes. On platforms outside of its tree there is none."""
        theirs = self.opmux_reason and self.experts_cls is not None
        return bool(theirs and base.is_monolithic.fget(self))

    def process_weights_after_loading(self: Any, layer: Any) -> None:
        self.opmux_reason = reason_against(layer, Settings.current())
        if self.opmux_reason:
            base.process_weights_after_loading(self, layer)

    def apply(
        self: Any,
        layer: Any,
        x: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        shared_experts: Any,
        shared_experts_input: torch.Tensor | None,
    ) -> Any:
        if self.opmux_reason:
            given = (x, topk_weights, topk_ids, shared_experts, shared_experts_input)
            return base.apply(self, layer, *given)
        w1, w2 = layer.w13_weight, layer.w2_weight
        return ops.fused_moe(x, w1, w2, topk_weights, topk_ids, layer.activation.value)

    members = {
        "is_monolithic": property(is_monolithic),
        "process_weights_after_loading": process_weights_after_loading,
        "apply": apply,
        "opmux_operator": "fused_moe",
        "opmux_reason": "its weights are not loaded yet",
        "__module__": __name__,
    }
    return type(f"Opmux{base.__name__}", (base,), members)


def _reason_against_router(router: Any, settings: Settings) -> str:
    if any(getattr(router, name, None) for name in _OTHER_ROUTING):
        return "it uses grouped top-k or a custom routing function"
    if router.scoring_func != "softmax":
        return f"its scoring function is {router.scoring_func}"
    if settings.exact:
        return "vLLM sums in a different order than opmux"
    return settings.reason_against("moe") or _devices.reason_against(
        "topk_softmax", torch.float32, lambda: _router_samples(router)
    )


def _router_samples(router: Any) -> _devices.Samples:
    logits = torch.zeros(1, router.global_num_experts, device=_devices.device()).float()
    weights, ids = (logits.new_zeros(1, router.top_k, dtype=dtype) for dtype in _ROUTED)
    return {"logits": logits, "renormalize": router.renormalize, "out": (weights, ids)}


def _router_class() -> Any:
    """Returns vLLM's class for routing by softmax on its platform."""
    if _devices.on_cpu():
        return import_module(f"{_LAYERS}.router.cpu_router").CPURouter
    return import_module(f"{_LAYERS}.router.fused_topk_router").FusedTopKRouter


def _hook_router() -> None:
    router = _router_class()
    make, route = router.__init__, router._compute_routing

    @wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self.opmux_reason = _reason_against_router(self, Settings.current())

    @wraps(route)
    def _compute_routing(
        self: Any,
        hidden_states: torch.Tensor,
        router_logits: torch.Tensor,
        indices_type: torch.dtype | None = None,
        **more: Any,
    ) -> Any:
        if self.opmux_reason:
            return route(self, hidden_states, router_logits, indices_type, **more)
        shape = (router_logits.shape[0], self.top_k)
        device = router_logits.device
        weights = torch.empty(shape, dtype=torch.float32, device=device)
        ids = torch.empty(shape, dtype=indices_type or torch.int32, device=device)
        return ops.topk_softmax(router_logits.float(), self.renormalize, out=(weights, ids))

    router.__init__, router._compute_routing = __init__, _compute_routing


def hook() -> None:
    """Replaces vLLM's routing and its method class for unquantized experts."""
    taken = import_module("vllm.model_executor.custom_op").op_registry_oot
    base = import_module(f"{_LAYERS}.unquantized_fused_moe_method").UnquantizedFusedMoEMethod
    if base.__name__ not in taken:  # unless another plugin registered a class
        base.register_oot(_experts(base))
    _hook_router()
