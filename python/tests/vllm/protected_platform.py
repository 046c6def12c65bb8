"""A platform of vLLM from outside of its tree, for models on the protected device of tests/device.

vLLM finds it by an entry point, see test_platform.py. The runner of vLLM's CPU platform prepares
the steps and samples; the model, its weights and its activations are in the memory of the device,
which the CPU cannot touch. Attention and its cache stay on the CPU, with copies.
"""

import protected_torch
from vllm.platforms.cpu import CpuPlatform
from vllm.platforms.interface import PlatformEnum

DEVICE = "protected"
protected_torch.register_backend()


def activate():
    """Returns the class of the platform; vLLM calls it in each of its processes."""
    return f"{__name__}.ProtectedPlatform"


class ProtectedPlatform(CpuPlatform):
    """Out-of-tree, so that vLLM dispatches its layers to `forward_oot`."""

    _enum = PlatformEnum.OOT
    device_name = device_type = DEVICE
    dispatch_key = "PrivateUse1"

    @classmethod
    def check_and_update_config(cls, vllm_config):
        device = vllm_config.device_config
        device.device_type = "cpu"  # the CPU's platform expects it
        super().check_and_update_config(vllm_config)
        device.device_type = DEVICE
        vllm_config.parallel_config.worker_cls = "protected_worker.Worker"

    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
        return "protected_worker.AttentionBackend"
