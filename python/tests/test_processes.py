"""Processes: fork during calls, spawn, forkserver, and data loader workers."""

import multiprocessing
import os
import queue
import threading

import numpy as np
import pytest

import opmux

SHORT, LONG = 50, 1000
SECONDS = 120  # much longer than any case takes: reached only by a deadlock


def norm(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def work(seed):
    """The work of a worker: small and large calls, in scopes, and one call that raises."""
    rng = np.random.default_rng(seed)
    for rows in (2, 64):
        x = rng.standard_normal((rows, 512), "f4")
        with opmux.expect("rms_norm/simd.*"):
            y = opmux.ops.rms_norm(x)
        with opmux.require("reference"), opmux.expect("rms_norm/reference.scalar"):
            z = opmux.ops.rms_norm(x)
        np.testing.assert_allclose(y, norm(x), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(z, y, rtol=1e-4, atol=1e-5)
    try:
        opmux.ops.rms_norm(x, x)
    except opmux.InvalidArgument:
        return os.getpid(), float(y.sum())
    raise AssertionError("a wrong shape was taken")


def load(tasks, results):
    """A worker like those of data loaders: takes indices until it gets None."""
    while (index := tasks.get()) is not None:
        results.put((index, work(index)))


def in_children(method, count):
    context = multiprocessing.get_context(method)
    with context.Pool(2, maxtasksperchild=max(count // 20, 5)) as pool:
        found = pool.map_async(work, range(count), chunksize=1).get(SECONDS * max(1, count // 50))
    assert len(found) == count and os.getpid() not in {pid for pid, _ in found}
    return {pid for pid, _ in found}


class Callers:
    """Threads that call while the process forks."""

    def __enter__(self):
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(2)]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        x = np.ones((64 if i else 2, 512), "f4")
        while not self.stop.is_set():
            with opmux.prefer("reference" if i else "default"):
                opmux.ops.softmax(x)

    def __exit__(self, *rest):
        self.stop.set()
        for thread in self.threads:
            thread.join(SECONDS)


def fork_while_others_call(count):
    opmux.ops.rms_norm(np.ones((2, 8), "f4"))
    with Callers():
        for i in range(count):
            child = os.fork()
            if child == 0:
                try:
                    work(i)
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            wait_for(child)


def wait_for(child):
    """Waits for the processes; fails instead of waiting forever."""
    done = queue.Queue()
    threading.Thread(target=lambda: done.put(os.waitpid(child, 0)), daemon=True).start()
    try:
        _, status = done.get(timeout=SECONDS)
    except queue.Empty:
        os.kill(child, 9)
        raise AssertionError("a child hangs") from None
    assert os.waitstatus_to_exitcode(status) == 0


def load_data(method, count):
    context = multiprocessing.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    workers = [context.Process(target=load, args=(tasks, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for index in range(count):
        tasks.put(index)
    found = dict(results.get(timeout=SECONDS) for _ in range(count))
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join(SECONDS)
    assert [w.exitcode for w in workers] == [0, 0] and len(found) == count


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(method):
    opmux.ops.rms_norm(np.ones((2, 8), "f4"))
    assert len(in_children(method, 10 if method != "fork" else SHORT)) >= 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_that_load_data(method):
    load_data(method, 20)


def test_fork_while_others_call():
    fork_while_others_call(SHORT)


def test_a_child_inherits_scopes_and_implementations():
    @opmux.implementation("rms_norm", "parent.v1", priority=900)
    def norm_of_parent(x, weight, eps, round_before_weight):
        return x * 3

    x = np.ones((2, 8), "f4")
    try:
        with opmux.expect("rms_norm/parent.v1"), opmux.prefer("vendor"):
            child = os.fork()
            if child == 0:
                try:
                    with opmux.report() as calls:
                        good = opmux.ops.rms_norm(x)[0, 0] == 3
                    with opmux.require("reference"), opmux.report() as inner:
                        opmux.ops.rms_norm(x)
                    names = calls.implementations() + inner.implementations()
                    good &= names == ["rms_norm/parent.v1", "rms_norm/reference.scalar"]
                    os._exit(0 if good else 1)
                except BaseException:
                    os._exit(2)
            wait_for(child)
            opmux.ops.rms_norm(x)
    finally:
        norm_of_parent.withdraw()


@pytest.mark.full
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_thousand_tasks_in_pools(method):
    in_children(method, LONG)


@pytest.mark.full
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_thousand_items_loaded(method):
    load_data(method, LONG)


@pytest.mark.full
def test_a_thousand_forks_while_others_call():
    fork_while_others_call(LONG)
