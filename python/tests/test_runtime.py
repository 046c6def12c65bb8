"""Runtimes: creation, environment variables, and several runtimes in one process."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import opmux

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")


class TestEnvironment:
    @pytest.mark.parametrize(
        "variables,expected",
        [
            ([], "simd.*"),
            ([("OPMUX_PREFER", "reference")], "reference.*"),
            ([("OPMUX_PER_OP", "rms_norm=reference")], "reference.*"),
            ([("OPMUX_PER_OP", "softmax=reference")], "simd.*"),
            ([("OPMUX_BACKEND_SIMD", "0")], "reference.*"),
            ([("OPMUX_BACKEND_SIMD", "1")], "simd.*"),
            ([("OPMUX_DISABLE", "1")], "reference.*"),
            ([("OPMUX_PREFER", "")], "simd.*"),
        ],
        ids=str,
    )
    def test_is_obeyed(self, variables, expected):
        made = opmux.create_runtime(environment=variables)
        with opmux.expect(f"rms_norm/{expected}", runtime=made):
            made.op("rms_norm")(X, W)

    @pytest.mark.parametrize(
        "name,value,nearest",
        [
            ("OPMUX_PREFFER", "reference", "OPMUX_PREFER"),
            ("OPMUX_STRIC", "1", "OPMUX_STRICT"),
            ("OPMUX_BACKEND_SMID", "0", "smid.*did you mean 'simd'"),
            ("OPMUX_STRICT", "maybe", "OPMUX_STRICT"),
            ("OPMUX_PREFER", "no such token", "OPMUX_PREFER"),
            ("OPMUX_MODE", "sometimes", "OPMUX_MODE"),
        ],
    )
    def test_errors_name_the_variable(self, name, value, nearest):
        with pytest.raises(opmux.Error, match=nearest) as raised:
            opmux.create_runtime(environment=[(name, value)])
        assert name.removesuffix("SMID") in str(raised.value)

    def test_disabled_is_told(self):
        assert opmux.create_runtime(environment=[("OPMUX_DISABLE", "1")]).disabled
        assert not opmux.create_runtime(environment=[]).disabled

    def test_of_the_process(self, monkeypatch):
        monkeypatch.setenv("OPMUX_PREFER", "reference")
        made = opmux.create_runtime()
        with opmux.expect("rms_norm/reference.*", runtime=made):
            made.op("rms_norm")(X, W)

    def test_a_bad_one_does_not_stop_the_import(self):
        script = (
            "import opmux\n"
            "try:\n    opmux.ops.rms_norm\n"
            "except opmux.Error as error:\n    print(error)\n"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                             env={**__import__("os").environ, "OPMUX_PREFFER": "x"})  # fmt: skip
        assert ran.returncode == 0 and "OPMUX_PREFER" in ran.stdout


class TestMany:
    def test_are_apart(self, runtime):
        other = opmux.create_runtime(environment=[])
        other.set_policy(opmux.policy(require=["reference"]))
        with opmux.expect("rms_norm/simd.*", runtime=runtime):
            runtime.op("rms_norm")(X, W)
        with opmux.expect("rms_norm/reference.*", runtime=other):
            other.op("rms_norm")(X, W)

    def test_operators_keep_theirs_alive(self):
        op = opmux.create_runtime(environment=[]).op("rms_norm")
        function = op.function
        del op
        np.testing.assert_allclose(function(X, W), X, rtol=1e-5)

    def test_generation_moves(self, runtime):
        before = runtime.generation
        runtime.set_policy(opmux.policy(prefer=["reference"]))
        assert runtime.generation > before

    def test_unknown_options(self):
        with pytest.raises(TypeError):
            opmux.create_runtime(nonsense=1)

    def test_threads(self):
        made = opmux.create_runtime(environment=[], threads=2)
        with opmux.expect("rms_norm/simd.*", runtime=made):
            made.op("rms_norm")(np.ones((256, 512), "f4"))


class TestDefault:
    def test_is_one(self):
        assert opmux.default_runtime() is opmux.default_runtime()

    def test_is_one_for_all_threads(self):
        script = (
            "import threading, opmux\n"
            "found, gate = [], threading.Barrier(8)\n"
            "def ask():\n    gate.wait(); found.append(opmux.default_runtime())\n"
            "all = [threading.Thread(target=ask) for _ in range(8)]\n"
            "[t.start() for t in all]; [t.join() for t in all]\n"
            "assert len(set(map(id, found))) == 1 and len(found) == 8\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)

    def test_can_be_made_anew(self):
        script = (
            "import numpy, opmux\n"
            "x = numpy.ones((2, 4), 'f4')\n"
            "first, held = opmux.default_runtime(), opmux.ops.rms_norm\n"
            "opmux.set_policy(opmux.policy(require=['reference']))\n"
            "opmux.reset_default_runtime()\n"
            "assert opmux.default_runtime() is not first\n"
            "with opmux.expect('rms_norm/simd.*'): opmux.ops.rms_norm(x)\n"
            "with opmux.expect('rms_norm/reference.*', runtime=first): held(x)\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_calls_from_many_threads_at_once():
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.standard_normal((int(rng.integers(1, 200)), 128), "f4")
            y = opmux.ops.rms_norm(x)
            wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
            if not np.allclose(y, wanted, rtol=1e-4, atol=1e-5):
                errors.append(seed)

    with opmux.expect("rms_norm/simd.*"):
        opmux.ops.rms_norm(X)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors


def test_warms_up_what_waits():
    opmux.Runtime(environment=[]).warm_up()
    opmux.warm_up()
