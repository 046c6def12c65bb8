"""Programs that end while threads, the shadow check or listeners are in use; see test_exits.py.

usage: exit_programs.py NAME STATE_FOLDER
"""

import atexit
import concurrent.futures
import multiprocessing
import os
import pathlib
import signal
import sys
import threading
import time

EARLY: list = []  # called by atexit after the functions of opmux, which registers later
atexit.register(lambda: [function() for function in EARLY])

import numpy as np  # noqa: E402

import opmux  # noqa: E402

PROGRAMS = {}
EVENTS: list = []
KEPT: list = []  # runtimes, so that they live until the interpreter ends
SMALL, LARGE = 16, 1 << 16  # calls that write 16,384 elements release the GIL
ONES = np.ones((64, 1024), "f4")


def program(status=0):
    """Decorates a program that should end with this status."""

    def add(function):
        PROGRAMS[function.__name__] = (function, status)
        return function

    return add


def new_runtime(**options):
    environment = [("OPMUX_STATE_DIR", sys.argv[2]), ("OPMUX_CRASH_JOURNAL", "with_handler")]
    if "config" in options:
        environment.append(("OPMUX_CONFIG", options.pop("config")))
    options.setdefault("sink", lambda *event: EVENTS.append(event))
    KEPT.append(opmux.create_runtime(environment=environment, **options))
    return KEPT[-1]


def double(x, *, out):
    np.multiply(x, 2, out=out)


def python_runtime(function=double, **options):
    """A runtime with an operator whose reference and first choice are Python functions."""
    made = new_runtime(**options)
    made.define("me.double(out Tensor y[N], Tensor x[N])")
    opmux.implementation("me.double", "own.body", kind="reference", runtime=made)(double)
    opmux.implementation("me.double", "acme.fast", vendor="acme", priority=500, runtime=made)(
        function
    )
    return made


def in_daemons(work, count=3, calls=1):
    """Repeats `work` on daemon threads forever; returns after each has worked `calls` times."""
    ready = threading.Barrier(count + 1)

    def repeat():
        for _ in range(calls):
            work()
        ready.wait(60)
        while True:
            work()

    for _ in range(count):
        threading.Thread(target=repeat, daemon=True).start()
    ready.wait(60)


def doubling(made, size):
    f, x = made.op("me.double"), np.ones(size, "f4")
    return lambda: f(x, out=np.empty_like(x))


@program()
def daemons_in_native_kernels():
    f = new_runtime().op("rms_norm")
    in_daemons(lambda: f(ONES))


@program()
def daemons_in_python_kernels():
    in_daemons(doubling(python_runtime(), LARGE))


@program()
def daemons_in_small_python_kernels():
    in_daemons(doubling(python_runtime(), SMALL))


@program()
def daemon_in_a_kernel_that_never_returns():
    inside = threading.Event()

    def sleeper(x, *, out):
        inside.set()
        time.sleep(3600)

    call = doubling(python_runtime(sleeper), LARGE)
    threading.Thread(target=call, daemon=True).start()
    inside.wait(60)


@program()
def daemons_in_nested_calls():
    def add_softmax(x, *, out):
        np.add(x, made.op("softmax")(ONES).reshape(-1), out=out)

    made = python_runtime(add_softmax)
    in_daemons(doubling(made, LARGE))


@program()
def shadow_check_with_a_python_reference():
    made = python_runtime()
    made.load_policy("opmux: 1\nshadow: {every: 1, share: 1}\n", "shadow")
    call = doubling(made, LARGE)
    for _ in range(100):
        call()


@program()
def policy_listener_on_the_watching_thread():
    file = pathlib.Path(sys.argv[2], f"policy-{os.getpid()}.yaml")
    file.write_text("opmux: 1\n")
    made = new_runtime(config=str(file))
    heard = threading.Event()
    made.on_policy(lambda change: (heard.set(), time.sleep(0.05)))

    def write():
        for i in range(10**9):
            other = file.with_suffix(".new")
            other.write_text(f"opmux: 1\nrules: [{{name: r{i}, op: softmax, prefer: [simd]}}]\n")
            other.rename(file)
            time.sleep(0.01)

    threading.Thread(target=write, daemon=True).start()
    heard.wait(60)


@program()
def listeners_that_raise():
    def fail(x, *, out):
        raise ValueError("no")

    def sink(level, code, op, impl, text):
        raise KeyError(code)

    made = python_runtime(fail, sink=sink)
    made.on_breaker(lambda event: 1 / 0)
    sys.unraisablehook = lambda raised: None
    in_daemons(doubling(made, LARGE), calls=10)


@program()
def selector_verifier_and_validator_on_daemons():
    made = python_runtime()
    made.set_selector(lambda op, accepted, facts: accepted[0], reads=["N"])
    made.add_validator(lambda policy: None)
    sizes = iter(range(1, 10**9))

    def work():
        made.load_policy("opmux: 1\n", "other")
        made.op("me.double")(np.ones(next(sizes), "f4"))

    in_daemons(work)


@program()
def points_answered_in_python():
    made = python_runtime()
    point = opmux.Point("me.tile(int) -> int", made)
    point.answer("acme")(lambda n: n + 1)
    in_daemons(lambda: point.ask(41) == 42 or os.abort())


@program(status=1)
def exception_that_nothing_catches():
    in_daemons(doubling(python_runtime(), LARGE))
    sys.stderr = None
    raise RuntimeError("wanted")


@program(status=7)
def exit_with_a_status():
    in_daemons(doubling(python_runtime(), LARGE))
    sys.exit(7)


@program(status=5)
def exit_inside_an_implementation():
    made = python_runtime(lambda x, *, out: sys.exit(5))
    in_daemons(lambda: made.op("softmax")(ONES))
    doubling(made, LARGE)()


@program(status=3)
def exit_at_once():
    in_daemons(doubling(python_runtime(), LARGE))
    os._exit(3)


@program(status=-signal.SIGTERM)
def terminated():
    in_daemons(doubling(python_runtime(), LARGE))
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


@program(status=-signal.SIGINT)
def interrupted():
    in_daemons(doubling(python_runtime(), LARGE))
    sys.stderr = None
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


@program(status=-signal.SIGABRT)
def wanted_abort():
    made = python_runtime()
    doubling(made, LARGE)()  # so that the main thread is known to be outside of all kernels
    in_daemons(doubling(made, LARGE))
    os.abort()


@program()
def forked_child_that_ends_normally():
    call = doubling(python_runtime(), LARGE)
    in_daemons(call)
    child = os.fork()
    if child == 0:
        in_daemons(call)
        sys.exit(9)
    sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9 else 1)


def norm_in_a_worker(seed):
    x = np.random.default_rng(seed).standard_normal((64, 512), "f4")
    return float(opmux.ops.rms_norm(x).sum())


@program()
def pools_of_threads_and_processes():
    call = doubling(python_runtime(), LARGE)
    in_daemons(call)
    threads = concurrent.futures.ThreadPoolExecutor(2)
    for _ in range(50):
        threads.submit(call)  # not awaited: the end of the interpreter waits for them
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert len(pool.map(norm_in_a_worker, range(8))) == 8


@program()
def calls_at_exit_and_in_destructors():
    made = python_runtime()
    f, x = made.op("me.double"), np.ones(LARGE, "f4")
    asked, answered = threading.Event(), threading.Event()

    def work():
        asked.wait()
        assert f(x)[0] == 2
        answered.set()

    def ask():
        asked.set()
        if not answered.wait(60) or f(x)[0] != 2:
            os._exit(99)

    class Caller:
        def __del__(self):
            if f(np.ones(SMALL, "f4"))[0] != 2:
                os._exit(98)

    threading.Thread(target=work, daemon=True).start()
    EARLY.append(ask)
    atexit.register(lambda: f(x)[0] == 2 or os._exit(97))
    local = threading.local()
    local.plan = f.bind(x, out=np.empty_like(x))
    globals().update(plan=f.bind(x), runtime=made, caller=Caller(), local=local)
    sys.kept = [Caller(), made, f.bind(x)]  # destroyed last


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]][0]()
