"""Replaces parts of a Hugging Face model by opmux's operators, and restores them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import MethodType, TracebackType
from typing import Any

import torch
from torch import nn

from . import _attention, _rotary
from ._modules import Forward, linear_forward, mlp_forward, norm_forward

KINDS = ("norm", "mlp", "rotary", "attention")
ALL = (*KINDS, "linear")


def _kind_of(module: nn.Module) -> str:
    """Returns the kind of a module, judged by its class name and attributes; "" if none fits."""
    name = type(module).__name__
    if type(module) is nn.Linear:
        return "linear"
    if name.endswith(("RMSNorm", "LayerNorm")):
        return "norm"
    if name.endswith("RotaryEmbedding"):
        return "rotary"
    if name.endswith("Attention") and hasattr(module, "scaling"):
        return "attention"
    if name.endswith(("MLP", "Experts", "MoeBlock", "MoE")):
        return "mlp"
    return ""


class Use:
    """The changes that `use` made to a model. Print it to list them; `undo()` or the end of a
    `with` block reverts them."""

    def __init__(self, model: nn.Module, kinds: tuple[str, ...]) -> None:
        self.replaced: Counter[str] = Counter()
        self.kept: dict[str, str] = {}
        self._model = model
        self._undo: list[Callable[[], None]] = []
        self._tried: dict[tuple[type, str], tuple[Forward | None, str]] = {}
        self._modules: dict[str, list[nn.Module]] = {kind: [] for kind in ALL}
        for module in model.modules():
            if kind := _kind_of(module):
                self._modules[kind].append(module)
        for kind in ALL:
            if kind in kinds:
                getattr(self, f"_use_{kind}")()
            elif kind in KINDS:
                self._keep(self._modules[kind], "it was not requested")

    def _keep(self, modules: list[nn.Module], reason: str) -> None:
        for module in modules:
            self.kept[type(module).__name__] = reason

    def _replace(self, module: nn.Module, forward: Forward, by: str) -> None:
        module.forward = MethodType(forward, module)
        self._undo.append(lambda: module.__dict__.pop("forward", None) and None)
        self.replaced[f"{type(module).__name__} -> {by}"] += 1

    def _stand_in(
        self, module: nn.Module, find: Callable[[nn.Module], tuple[Forward | None, str]]
    ) -> Forward | None:
        """Returns the replacement forward of a module, found once per class and parameter
        shapes."""
        if "forward" in module.__dict__:
            self.kept[type(module).__name__] = "its forward is already replaced"
            return None
        shapes = repr([(p.shape, p.dtype) for p in module.parameters()])
        key = type(module), shapes
        if key not in self._tried:
            try:
                self._tried[key] = find(module)
            except Exception as error:  # an unexpected kind of module
                self._tried[key] = None, f"trying it failed: {error}"
        forward, reason = self._tried[key]
        if forward is None:
            self.kept[type(module).__name__] = reason
        return forward

    def _use_norm(self) -> None:
        for module in self._modules["norm"]:
            if forward := self._stand_in(module, norm_forward):
                by = "layer_norm" if isinstance(module, nn.LayerNorm) else "rms_norm"
                self._replace(module, forward, by)

    def _use_mlp(self) -> None:
        for module in self._modules["mlp"]:
            if forward := self._stand_in(module, mlp_forward):
                self._replace(module, forward, forward.__name__)

    def _use_linear(self) -> None:
        for module in self._modules["linear"]:
            if forward := self._stand_in(module, linear_forward):
                self._replace(module, forward, "linear")

    def _use_rotary(self) -> None:
        attentions = {type(m) for m in self._modules["attention"]}
        for module in self._modules["rotary"]:
            family = sys.modules[type(module).__module__]
            own = [a for a in attentions if a.__module__ == family.__name__]
            reason = _rotary.reason_against(family, own) if own else "no attention of its family"
            if len(own) != len(attentions):
                reason = reason or "attention of another family uses it"
            if reason:
                self._keep([module], reason)
                continue
            _rotary.patch(family)
            self._undo.append(lambda name=family.__name__: _rotary.restore(name))  # type: ignore[misc]
            self._replace(module, _rotary.angles, "rotary_embedding")

    def _use_attention(self) -> None:
        model: Any = self._model
        modules = self._modules["attention"]
        if not hasattr(model, "set_attn_implementation"):
            return self._keep(modules, "the model has no set_attn_implementation")
        _attention.register()
        before = model.config._attn_implementation
        try:
            model.set_attn_implementation(_attention.NAME)
        except (ValueError, ImportError) as error:
            return self._keep(modules, str(error))
        self._undo.append(lambda: model.set_attn_implementation(before))
        for module in modules:
            self.replaced[f"{type(module).__name__} -> attention"] += 1
        return None

    def undo(self) -> None:
        """Restores the model."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Use:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()

    def __str__(self) -> str:
        lines = [f"opmux in {type(self._model).__name__}"]
        for what, times in sorted(self.replaced.items()):
            lines.append(f"  replaced {times:3d} x {what}")
        for what, reason in sorted(self.kept.items()):
            lines.append(f"  kept           {what}: {reason}")
        return "\n".join(lines)

    __repr__ = __str__


def use(model: nn.Module, *, only: tuple[str, ...] = KINDS) -> Use:
    """Makes a Hugging Face model call opmux for its norms, gated layers, rotary embeddings and
    attention where they have a known form. Each kind of module is first compared with its
    replacement on a small random input.

    Returns an object that lists what was replaced, what was kept and why; its `undo()` reverts the
    changes. `only` names the kinds to replace: "norm", "mlp", "rotary", "attention" and "linear".
    The default omits "linear" because an implementation may keep a packed copy of each weight. Use
    the model for inference only: rotary embeddings and attention refuse tensors that require grad,
    so call it under `torch.no_grad()`.
    """
    unknown = [kind for kind in only if kind not in ALL]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of {', '.join(ALL)}")
    with torch.no_grad():
        return Use(model, tuple(only))
