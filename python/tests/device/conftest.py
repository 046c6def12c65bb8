"""The protected devices of tests/device: their driver, and a torch backend in their memory.

The backend changes torch for the whole process, so these tests run in a separate process.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported

import protected_torch
import pytest
import torch

import opmux

protected_torch.register_backend()


@pytest.fixture
def runtime():
    """A new runtime with the backend `protected`."""
    made = opmux.create_runtime(environment=[])
    made.load_plugin(str(protected_torch.PLUGIN))
    return made


@pytest.fixture
def driver(runtime):
    """The functions of the driver, which torch uses too."""
    functions = protected_torch.connect(runtime)
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
