"""The protected devices of tests/device for torch: a backend for PrivateUse1 in their memory, and
the functions of their driver.

The driver is in a plugin. TEST_DEVICE_LIBRARIES names the folder with both libraries. The backend
changes torch for the whole process.
"""

import ctypes
import os
import pathlib
import types

import torch

import opmux

FOLDER = pathlib.Path(os.environ["TEST_DEVICE_LIBRARIES"])
PLUGIN = FOLDER / "protected.so"
NUMBER = 12  # DLPack's number of PrivateUse1

_number, _pointer, _size = ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64


def _function(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


class Functions(ctypes.Structure):
    """`Driver` of tests/device/protected_device.hpp."""

    _fields_ = [
        ("allocate", _function(_number, _number, _size, ctypes.POINTER(_pointer))),
        ("free", _function(None, _number, _pointer, _pointer)),
        ("copy", _function(_number, _number, _pointer, _pointer, _size, _number, _number,
                           _pointer)),
        ("synchronize", _function(_number, _number, _pointer)),
        ("create_stream", _function(_pointer, _number)),
        ("scale", _function(_number, _number, _pointer, _pointer, ctypes.c_int64, ctypes.c_float,
                            _pointer)),
        ("reset", _function(None, _number)),
        ("hold", _function(None, _number)),
        ("release", _function(None, _number)),
        ("fail_next", _function(None, _number, _number)),
        ("refuse", _function(None, _number, ctypes.c_char_p)),
        ("lose", _function(None, _number)),
        ("ran_text", _function(None, _number, ctypes.c_char_p, _size)),
    ]  # fmt: skip

    def ran(self, device):
        """The names of the kernels that finished on a device, in order."""
        text = ctypes.create_string_buffer(4096)
        self.ran_text(device, text, len(text))
        return text.value.decode().split()


_library = torch.library.Library("aten", "IMPL")  # holds the registrations below


def _resize(tensor, size, *, memory_format=None):
    """Gives a tensor new memory if its shape changes; its elements are not kept."""
    if tensor.shape != torch.Size(size):
        made = torch.empty(size, dtype=tensor.dtype, device=tensor.device)
        tensor.set_(made.untyped_storage(), 0, made.shape, made.stride())
    return tensor


def _copy_and_resize(source, to):
    return _resize(to, source.shape).copy_(source)


def register_backend():
    """Registers the backend with torch; its tensors are on the device `protected`."""
    torch.utils.rename_privateuse1_backend("protected")
    module = types.ModuleType("torch.protected")
    module._lazy_init = lambda: None
    module.is_available = lambda: True
    module.device_count = lambda: 2
    module._is_in_bad_fork = lambda: False
    torch._register_device_module("protected", module)
    torch.ops.load_library(FOLDER / "libprotected_torch.so")
    # Outputs that torch resizes, as those of torch.arange.
    _library.impl("resize_", _resize, "PrivateUse1")
    _library.impl("_copy_from_and_resize", _copy_and_resize, "PrivateUse1")


def connect(runtime):
    """Gives the torch backend the driver in the plugin, and returns the functions of the driver."""
    address = opmux.Point("protected.driver(Device) -> int", runtime).ask((NUMBER, 0))
    torch.ops.protected_device.use(address)
    return Functions.from_address(address)
