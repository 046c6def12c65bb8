#!/usr/bin/env python3
"""Arguments of Python calls, drawn from the fuzzer's input: arrays of any shape, stride and type, numbers, texts,
lists and objects whose special methods misbehave. A call must return or raise one of the documented errors.

usage: python_arguments.py [libFuzzer options] [CORPUS...]     (tools/fuzz runs it)

Needs atheris and an installed opmux. atheris follows the Python code of the package and of this file; the extension
module is not instrumented. Only kernels that check their arguments are called: plain calls do not look for overlapping outputs.
"""
import sys

import atheris
import numpy as np

with atheris.instrument_imports(include=["opmux"]):
    import opmux

RUNTIME = opmux.create_runtime(environment=[], backends=False, sink=lambda *_: None)
SCHEMAS = (
    "fuzz_all(out Tensor y[N], Tensor x[N], Tensor? w[N], Tensor[] rest, int i = 1, float f = 0.5, bool b = false,"
    " str s = \"a\", int[] list = [1], enum{one, two} e = one)",
    "fuzz_two(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6)",
)
TYPES = ("f4", "f8", "f2", "i1", "i4", "i8", "u1", "?", "c8", ">f4", "S3", "O", "M8[s]", "V4")
ALLOWED = (opmux.Error, TypeError, ValueError, OverflowError, BufferError, AttributeError, NotImplementedError)


class Misbehaving(Exception):
    """Raised by the special methods below."""


class Odd:
    """An object that looks like a number, a list or a tensor, and changes or fails when it is asked."""

    def __init__(self, data, victim):
        self.mood, self.number, self.victim = data.ConsumeIntInRange(0, 7), data.ConsumeInt(8), victim

    def _ask(self):
        if self.mood == 0:
            raise Misbehaving
        if self.mood == 1:
            self.victim.clear()
        if self.mood == 2:
            self.victim.extend([1] * 64)
        return self.number

    def __index__(self):
        return self._ask()

    def __float__(self):
        return float(self._ask())

    def __bool__(self):
        return bool(self._ask())

    def __len__(self):
        return self._ask() & 0xFF

    def __getitem__(self, at):
        return self._ask() if at < 4 else [][0]

    def __dlpack_device__(self):
        return (self._ask() & 0xF, self.number & 1) if self.mood != 3 else self.number

    def __dlpack__(self, **_):
        if self.mood == 4:
            return np.zeros(3, "f4").__dlpack__()
        return self._ask() if self.mood != 5 else None


@atheris.instrument_func
def draw_array(data):
    kind = TYPES[data.ConsumeIntInRange(0, len(TYPES) - 1)]
    shape = [data.ConsumeIntInRange(0, 5) for _ in range(data.ConsumeIntInRange(0, 10))]
    if int(np.prod(shape)) > 4096:
        shape = shape[:3]
    array = np.zeros(shape, kind)
    form = data.ConsumeIntInRange(0, 5)
    if form == 1:
        array = array.T
    elif form == 2 and array.ndim:
        array = array[..., ::2]
    elif form == 3 and array.ndim:
        array = array[::-1]
    elif form == 4:
        array = np.broadcast_to(array, (2, *array.shape))
    elif form == 5:
        array.flags.writeable = False
    return array


@atheris.instrument_func
def draw(data, victim, depth=0):
    """An object for one argument. `victim` is a list that odd objects change while it is read."""
    choice = data.ConsumeIntInRange(0, 11)
    if choice <= 4:
        return draw_array(data)
    if choice == 5:
        return data.ConsumeInt(data.ConsumeIntInRange(1, 16))
    if choice == 6:
        return data.ConsumeFloat()
    if choice == 7:
        return data.ConsumeUnicode(data.ConsumeIntInRange(0, 20))
    if choice == 8:
        return None if data.ConsumeBool() else data.ConsumeBool()
    if choice == 9:
        return Odd(data, victim)
    if choice == 10 and depth < 3:
        made = [] if depth else victim
        made.extend(draw(data, victim, depth + 1) for _ in range(data.ConsumeIntInRange(0, 6)))
        return tuple(made) if data.ConsumeBool() else made
    return data.ConsumeBytes(8) if data.ConsumeBool() else {"a": 1}


@atheris.instrument_func
def keyword(data):
    names = ("x", "w", "weight", "rest", "i", "f", "b", "s", "list", "e", "eps", "out", "y", "")
    if data.ConsumeIntInRange(0, 15) == 0:
        return data.ConsumeUnicode(6)
    return names[data.ConsumeIntInRange(0, len(names) - 1)]


@atheris.instrument_func
def test_one_input(input_bytes):
    data = atheris.FuzzedDataProvider(input_bytes)
    victim = []
    name = ("fuzz_all", "fuzz_two")[data.ConsumeIntInRange(0, 1)]
    use = data.ConsumeIntInRange(0, 2)
    args = [draw(data, victim) for _ in range(data.ConsumeIntInRange(0, 5))]
    kwargs = {keyword(data): draw(data, victim) for _ in range(data.ConsumeIntInRange(0, 4))}
    op = RUNTIME.op(name)
    try:
        if use == 0:
            op(*args, **kwargs)
        elif use == 1:
            str(opmux.explain(op, *args, **kwargs))
        else:
            op.bind(*args, **kwargs)()
    except (*ALLOWED, Misbehaving):
        pass


def main():
    kept = []
    for schema in SCHEMAS:
        RUNTIME.define(schema)
        op = schema.partition("(")[0]
        made = opmux.implementation(op, "fuzz.v1", kind="vendor", priority=100, runtime=RUNTIME)
        kept.append(made(lambda *args, out, **kwargs: None))
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()


main()
