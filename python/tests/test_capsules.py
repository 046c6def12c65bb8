"""DLPack capsules with wrong contents: each is refused, and the process lives on."""

import ctypes

import numpy as np
import pytest

import opmux


class Tensor(ctypes.Structure):
    """A DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Wrong:
    """A tensor of shape (4, 8) whose capsule has the given fields."""

    def __init__(self, name=b"dltensor", **fields):
        self.memory = np.ones(64, "f4")
        self.numbers = [(ctypes.c_int64 * len(n))(*n) for n in ((4, 8), (8, 1))]
        for key in ("shape", "strides"):
            if fields.get(key) is not None:
                self.numbers.append((ctypes.c_int64 * len(fields[key]))(*fields[key]))
                fields[key] = self.numbers[-1]
        plain = {
            "data": self.memory.ctypes.data,
            "device_type": 1,
            "ndim": 2,
            "code": 2,
            "bits": 32,
            "lanes": 1,
            "shape": self.numbers[0],
            "strides": self.numbers[1],
        }
        self.managed = Managed(Tensor(**(plain | fields)))
        self.name = name

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


WRONG = {
    "no shape": {"shape": None, "strides": None},
    "negative rank": {"ndim": -1},
    "rank of nine": {"ndim": 9, "shape": (1,) * 9, "strides": (1,) * 9},
    "largest rank": {"ndim": 2**31 - 1},
    "no data": {"data": None},
    "no bits": {"bits": 0},
    "no lanes": {"lanes": 0},
    "wide elements": {"bits": 255, "lanes": 65535},
    "negative dimension": {"shape": (-4, 8)},
    "huge dimensions": {"shape": (2**40, 2**40)},
    "offset beyond the address space": {"byte_offset": 2**63},
    "device without memory here": {"device_type": 2, "data": 0x7F1200000000},
    "used capsule": {"name": b"used_dltensor"},
}


def test_a_right_capsule_is_read():
    assert opmux.ops.rms_norm(Wrong(), out=np.empty((4, 8), "f4"))[0, 0] == pytest.approx(1)


@pytest.mark.parametrize("place", ["x", "out"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_capsule_is_refused(name, place):
    given = {"x": np.ones((4, 8), "f4"), "out": np.empty((4, 8), "f4")}
    given[place] = Wrong(**WRONG[name])
    with pytest.raises(opmux.Error):
        opmux.ops.rms_norm(**given)
