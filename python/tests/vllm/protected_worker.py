"""The worker of `protected_platform`."""

import contextlib

import protected_torch
from protected_platform import DEVICE
from vllm.v1.attention.backends import cpu_attn
from vllm.v1.worker import cpu_worker
from vllm.v1.worker.cpu_model_runner import CPUModelRunner

import opmux


class AttentionImpl(cpu_attn.CPUAttentionBackendImpl):
    """vLLM's attention of the CPU on copies of the device's tensors."""

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        super().do_kv_cache_update(layer, key.cpu(), value.cpu(), kv_cache, slot_mapping)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, *scales, **named):
        if attn_metadata is not None:
            given = query.cpu(), key.cpu(), value.cpu(), kv_cache, attn_metadata
            output.copy_(super().forward(layer, *given, output.cpu(), *scales, **named))
        return output


class AttentionBackend(cpu_attn.CPUAttentionBackend):
    """Keeps the name that vLLM's registry looks for."""

    @staticmethod
    def get_impl_cls():
        return AttentionImpl


class ModelRunner(CPUModelRunner):
    """Copies the inputs of each step to the device, and the logits back."""

    def load_model(self, load_dummy_weights=False):
        super().load_model(load_dummy_weights)
        assert {p.device.type for p in self.model.parameters()} == {DEVICE}
        compute = self.model.compute_logits
        self.model.compute_logits = lambda hidden: compute(hidden).cpu()

    def _model_forward(self, input_ids=None, positions=None, *more, **named):
        return super()._model_forward(input_ids.to(DEVICE), positions.to(DEVICE), *more, **named)


class Worker(cpu_worker.CPUWorker):
    """Connects torch to the device and makes the runner of this module."""

    def init_device(self):
        runtime = opmux.create_runtime(environment=[])
        runtime.load_plugin(str(protected_torch.PLUGIN))
        self.driver = protected_torch.connect(runtime)
        cpu_worker.CPUModelRunner = ModelRunner
        super().init_device()

    def _maybe_get_memory_pool_context(self, tag):
        return contextlib.nullcontext()
