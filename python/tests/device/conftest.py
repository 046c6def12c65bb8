"""The protected devices of tests/device: their driver, and a torch backend in their memory.

The driver is in a plugin, and the torch backend changes torch for the whole process. Therefore
these tests run in a separate process; TEST_DEVICE_LIBRARIES names the folder with both libraries.
"""

import ctypes
import os
import pathlib
import types

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported

import pytest
import torch

import opmux

FOLDER = pathlib.Path(os.environ["TEST_DEVICE_LIBRARIES"])
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


def _register_torch_backend():
    torch.utils.rename_privateuse1_backend("protected")
    module = types.ModuleType("torch.protected")
    module._lazy_init = lambda: None
    module.is_available = lambda: True
    module.device_count = lambda: 2
    module._is_in_bad_fork = lambda: False
    torch._register_device_module("protected", module)
    torch.ops.load_library(FOLDER / "libprotected_torch.so")


_register_torch_backend()


@pytest.fixture
def runtime():
    """A new runtime with the backend `protected`."""
    made = opmux.create_runtime(environment=[])
    made.load_plugin(str(FOLDER / "protected.so"))
    return made


@pytest.fixture
def driver(runtime):
    """The functions of the driver, which torch uses too."""
    address = opmux.Point("protected.driver(Device) -> int", runtime).ask((NUMBER, 0))
    torch.ops.protected_device.use(address)
    functions = Functions.from_address(address)
    for device in range(2):
        functions.reset(device)
    yield functions
    for device in range(2):
        functions.reset(device)


@pytest.fixture
def numbers(driver):
    """Makes a tensor of two rows on a device."""

    def make(device=0):
        rows = torch.arange(1.0, 9.0).reshape(2, 4)
        return rows.to(f"protected:{device}")

    return make
