"""Arguments that change while a call reads them: lists that shrink and grow, types that call back.

Each program runs with Python's debug allocator, which overwrites freed memory.
"""

import os
import subprocess
import sys
import textwrap

import pytest

START = """
import gc, sys, threading, weakref
import numpy as np
import opmux

runtime = opmux.create_runtime(environment=[])
runtime.define("me.ints(out Tensor y[N], Tensor x[N], int[] p)")
runtime.define("me.tensors(out Tensor y[N], Tensor[] xs)")
seen = []

@opmux.implementation("me.ints", "own.body", kind="reference", runtime=runtime)
def ints_body(x, p, *, out):
    seen.append(list(p))
    out[:] = x

@opmux.implementation("me.tensors", "own.body", kind="reference", runtime=runtime)
def tensors_body(xs, *, out):
    seen.append([alive()])
    out[:] = 0

ints, tensors = runtime.op("me.ints"), runtime.op("me.tensors")
x, y = np.ones(4, "f4"), np.empty(4, "f4")

def garbage():
    gc.collect()
    return [bytes(100) for _ in range(1000)]
"""

PROGRAMS = {
    "an_index_that_clears_the_list": """
        class Clears:
            def __index__(self):
                given.clear()
                garbage()
                return 7
        given = [1, Clears(), Clears(), 3]
        assert ints(x, given, out=y) is y
        assert seen == [[]], "the function of Python gets the caller's list"
    """,
    "an_index_that_raises_after_clearing_the_list": """
        class Raises:
            def __index__(self):
                given.clear()
                garbage()
                raise TypeError("no")
        for _ in range(100):
            given = [Raises() for _ in range(3)]
            try:
                ints(x, given, out=y)
            except opmux.InvalidArgument as error:
                assert "Raises" in str(error)
            else:
                raise AssertionError("accepted")
    """,
    "an_index_that_grows_the_list": """
        class Grows:
            def __index__(self):
                given.append(self)
                return 1
        given = [Grows()]
        assert ints(x, given, out=y) is y
        assert len(seen[0]) == len(given) == 2
    """,
    "an_index_that_calls_the_operator": """
        class Calls:
            def __index__(self):
                if not seen:
                    ints(x, [5, 6, 7, 8], out=np.empty(4, "f4"))
                return 2
        assert ints(x, [1, Calls(), 3], out=y) is y
        assert seen[0] == [5, 6, 7, 8] and len(seen[1]) == 3
    """,
    "a_tensor_that_clears_the_list": """
        class Clears:
            def __dlpack_device__(self):
                return (1, 0)
            def __dlpack__(self, **options):
                given.clear()
                garbage()
                return np.full(4, 5, "f4").__dlpack__()
        given = [np.full(4, 3, "f4"), Clears(), np.full(4, 4, "f4")]
        kept = weakref.ref(given[0])
        alive = lambda: kept() is not None
        assert tensors(given, out=y) is y
        assert seen == [[True]] and not alive()
    """,
    "a_thread_that_clears_the_list_during_the_call": """
        inside, cleared = threading.Event(), threading.Event()
        size = 1 << 16  # large enough that the call releases the GIL

        @opmux.implementation("me.tensors", "acme.slow", priority=900, runtime=runtime)
        def slow(xs, *, out):
            inside.set()
            cleared.wait(60)
            garbage()
            seen.append(alive())
            out[:] = 0

        given = [np.full(size, 3, "f4"), np.full(size, 4, "f4")]
        kept = weakref.ref(given[1])
        alive = lambda: kept() is not None
        def clear():
            inside.wait(60)
            given.clear()
            cleared.set()
        threading.Thread(target=clear).start()
        with opmux.expect("me.tensors/acme.slow", runtime=runtime):
            tensors(given, out=np.empty(size, "f4"))
        assert seen == [True] and not alive()
    """,
    "a_sequence_that_lies_about_its_length": """
        class Lies:
            def __len__(self):
                return 1000
            def __getitem__(self, i):
                if i == 3:
                    raise IndexError
                return i + 1
        ints(x, Lies(), out=y)
        assert seen == [[1, 2, 3]], seen
    """,
    "a_device_of_a_point_that_clears_its_list": """
        class Clears:
            def __index__(self):
                given.clear()
                garbage()
                return 1
            __int__ = __index__
        point = opmux.Point("me.tile(Device) -> int", runtime)
        point.answer("own")(lambda device: device[0] * 10 + device[1])
        given = [Clears(), 0]
        try:
            point.ask(given)
        except (TypeError, RuntimeError):
            pass
    """,
    "an_attribute_of_an_item_that_clears_the_list": """
        @opmux.dispatchable
        def first(items):
            return "body"

        class Item:
            clears = False
            @property
            def layout(self):
                if Item.clears:
                    given.clear()
                    garbage()
                return 1
            @property
            def width(self):
                return 2

        fast = first.implementation("acme.fast")(lambda items: "fast")
        fast.verifier(lambda items: items[0].layout + items[0].width == 3 or "no")

        given = [Item()]
        assert first(given) == "fast" and first(given) == "fast"
        Item.clears = True
        first(given)
        Item.clears = False
        given = [Item()]
        assert first(given) == "fast"
    """,
    "an_attribute_that_calls_the_function_again": """
        @opmux.dispatchable
        def first(item):
            return "body"

        class Item:
            depth = 0
            @property
            def layout(self):
                if Item.depth == 1:
                    Item.depth = 2
                    for i in range(20):  # more than are cached
                        first(type(f"Other{i}", (), {"layout": i})())
                    garbage()
                return 1

        fast = first.implementation("acme.fast")(lambda item: "fast")
        fast.verifier(lambda item: item.layout == 1 or "no")

        assert first(Item()) == "fast" and first(Item()) == "fast"
        Item.depth = 1
        assert first(Item()) == "fast"
        assert first(Item()) == "fast"
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_reads_the_arguments_as_they_were(name):
    program = START + textwrap.dedent(PROGRAMS[name])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ, PYTHONMALLOC="debug"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
