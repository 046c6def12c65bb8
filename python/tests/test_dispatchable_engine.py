"""Dispatchable functions without a schema are operators of the engine: decisions, breakers,
counters, the status file and lockfiles are those of the engine."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth


def _breaker(id):
    return {one.implementation: one.state for one in opmux.health().breakers}.get(id)


def _stats(id):
    return next(one for one in opmux.stats() if one.implementation == id)


class Weak:
    """Fails while `fails` is set, and counts its calls."""

    def __init__(self, fails=True):
        self.fails, self.calls = fails, 0

    def __call__(self, q):
        self.calls += 1
        if self.fails:
            raise RuntimeError("no luck")
        return "acme"


@pytest.fixture
def weak(scan):
    made = Weak()
    scan.implementation("acme.weak", pure=True)(made)
    return made


def test_a_failing_backend_rests_instead_of_being_tried_50_of_50_times(scan, weak):
    assert [scan(1) for _ in range(50)] == ["body"] * 50
    assert weak.calls == 5
    assert _breaker("test_scan/acme.weak") == "open"
    assert opmux.health().verdict == "degraded"
    assert scan.last == "test_scan/own.body"
    found = {one.id: one for one in scan.explain(1).candidates}["test_scan/acme.weak"]
    assert (found.verdict, found.code) == ("refused", "health.open")


def _own(name):
    """A separate function, because changes of breakers are published at most once in a while for
    each operator."""
    made = opmux.dispatchable(name=name)(lambda q: "body")
    made.implementation("acme.fast")(lambda q: sum(range(20_000)) and "acme")
    return made


def test_force_breaker_takes_effect_on_calls_that_were_decided():
    forced = _own("test_forced")
    assert [forced(1), forced(1)] == ["acme", "acme"]
    opmux.force_breaker("test_forced/acme.fast", "isolate")
    assert [forced(1), forced(1)] == ["body", "body"]
    assert forced.last == "test_forced/own.body"


def test_stats_count_the_calls_that_ended_well(scan):
    scan.implementation("acme.fast")(lambda q: NotImplemented if q == 0 else "acme")
    before = _stats("test_scan/own.body") if scan(0) == "body" else None
    for i in range(1, 8):
        assert scan(i) == "acme"
    assert (before.calls, before.stood_in) == (1, 1)
    assert (_stats("test_scan/acme.fast").calls, _stats("test_scan/acme.fast").declined) == (7, 1)


def test_a_failure_counts_and_falls_back_only_if_the_function_is_pure(scan):
    made = Weak()
    scan.implementation("acme.weak")(made)
    for _ in range(2):
        with pytest.raises(opmux.Failed, match="no luck"):
            scan(1)
    assert _stats("test_scan/acme.weak").failed == 2
    assert _stats("test_scan/own.body").calls == 0


def test_a_backend_that_is_switched_off_does_not_run(scan):
    scan.implementation("acme.fast")(lambda q: "acme")
    assert scan(1) == "acme"
    opmux.default_runtime().enable_backend("acme", False)
    try:
        assert scan(1) == "body"
        assert scan.last == "test_scan/own.body"
    finally:
        opmux.default_runtime().enable_backend("acme", True)
    assert scan(1) == "acme"


def test_rules_read_the_tensors_of_a_call(scan):
    scan.implementation("acme.fast")(lambda q: "acme")
    rule = opmux.rule(
        op="test_scan", when=opmux.Condition.dtype("q", "f32"), deny=["test_scan/acme.*"]
    )
    with opmux.scope(rules=[rule]):
        for _ in range(2):
            assert scan(np.zeros(2, "f4")) == "body"
            assert scan(np.zeros(2, "f8")) == "acme"
            assert scan(1) == "acme"
    assert scan(np.zeros(2, "f4")) == "acme"


def test_dtypes_and_contiguous_take_effect(scan):
    scan.implementation("acme.half", dtypes=["f16"], contiguous=True)(lambda q: "acme")
    for _ in range(2):
        assert scan(np.zeros(4, "f2")) == "acme"
        assert scan(np.zeros(4, "f4")) == "body"
        assert scan(np.zeros(4, "f2")[::2]) == "body"
    codes = {one.id: one.code for one in scan.explain(np.zeros(4, "f4")).candidates}
    assert codes["test_scan/acme.half"] == "caps.dtype"


@pytest.mark.parametrize(
    "options",
    [
        {"serial": True},
        {"multiple_of": {"N": 8}},
        {"at_least": {"N": 8}},
        {"at_most": {"N": 8}},
        {"hints": [opmux.Hint("N", most=8, priority=200)]},
        {"build": "acme-1.4"},
    ],
)
def test_options_without_effect_are_refused(scan, options):
    with pytest.raises(opmux.InvalidArgument) as refused:
        scan.implementation("acme.fast", **options)
    assert refused.value.reason == "python.option"
    with pytest.raises(opmux.InvalidArgument):
        opmux.implementation("test_scan", "acme.fast", **options)(lambda q: "acme")
    assert scan(1) == "body"


def test_pure_is_refused_for_operators(runtime):
    runtime.define("test_copy(out Tensor y[N], Tensor x[N])")
    with pytest.raises(opmux.InvalidArgument, match="atomic_outputs"):
        opmux.implementation("test_copy", "acme.fast", pure=True, runtime=runtime)(print)


def test_slow_calls_open_the_breaker():
    slow = _own("test_slow")
    runtime = opmux.default_runtime()
    limits = "{slow_call: 1us, slow_rate: 0.5, window: 10, min_calls: 4}"
    runtime.load_policy(f"opmux: 1\nbreaker: {limits}\n")
    try:
        results = [slow(1) for _ in range(100)]
    finally:
        runtime.load_policy("opmux: 1\n")
    assert results[0] == "acme" and results[-1] == "body"


def test_calls_nest_to_any_depth(scan):
    @scan.implementation("acme.fast")
    def fast(q):
        return "end" if q == 0 else scan(q - 1)

    with opmux.expect("test_scan/acme.fast") as calls:
        assert scan(30) == "end"
    assert len(calls) == 31


def test_an_operator_with_the_same_name_is_left_alone():
    with pytest.raises(opmux.AlreadyExists):
        opmux.dispatchable(name="softmax")(lambda x: x)(1)
    opmux._runtime.families.pop("softmax", None)


def test_a_function_may_be_written_again_with_other_parameters():
    def make(parameters):
        space = {}
        exec(f"def test_again({parameters}):\n    return 'body'", space)
        return opmux.dispatchable(space["test_again"])

    assert make("q")(1) == "body"
    changed = make("k, q")
    changed.implementation("acme.half", dtypes=["f16"])(lambda k, q: "acme")
    assert changed(np.zeros(2, "f4"), np.zeros(2, "f2")) == "acme"
    assert changed(np.zeros(2, "f2"), np.zeros(2, "f4")) == "body"


def test_the_health_report_names_it(scan, weak):
    for _ in range(6):
        scan(1)
    found = json.loads(opmux.health().to_json())["breakers"]
    assert [one["state"] for one in found if one["implementation"] == "test_scan/acme.weak"]


def test_the_status_file_has_its_choices_and_calls(tmp_path):
    code = """
        import sys
        import numpy as np
        import opmux

        @opmux.dispatchable
        def scan(q):
            return "body"

        fast = scan.implementation("acme.fast")(lambda q: "acme")
        fast.verifier(lambda q: q.dtype == np.float32 or "not f32")
        for _ in range(7):
            scan(np.zeros(4, "f4"))
        scan(np.zeros(4, "f8"))
        print("ready", flush=True)
        sys.stdin.read()
    """
    environment = {
        **os.environ, "OPMUX_STATE_DIR": str(tmp_path), "OPMUX_STATE_PAGE": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(opmux.NotFound):
                (runtime,) = opmux.process_state(process.pid, str(tmp_path)).runtimes
                if runtime.calls("scan/acme.fast") == 7:
                    break
            assert time.monotonic() < end, "the page does not come"
        choices = {choice.when: choice.accepted[0] for choice in runtime.choices
                   if choice.op == "scan"}  # fmt: skip
        process.kill()
    assert runtime.calls("scan/own.body") == 1
    assert {id for when, id in choices.items() if "f32" in when} == {"scan/acme.fast"}
    assert {id for when, id in choices.items() if "f64" in when} == {"scan/own.body"}


LOCKED = """
    import sys
    import numpy as np
    import opmux

    @opmux.dispatchable
    def scan(q):
        return "body"

    fast = scan.implementation("acme.fast")(lambda q: "acme")
    fast.verifier(lambda q: q.dtype == np.float32 or "not f32")
    f4, f8 = np.zeros(4, "f4"), np.zeros(4, "f8")
"""


def _run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LOCKED) + textwrap.dedent(code)],
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_lockfile_has_it_and_a_frozen_runtime_keeps_the_choice(tmp_path):
    path = str(tmp_path / "opmux.lock")
    assert _run(
        f"""
        scan(f4)
        lock = opmux.default_runtime().lock()
        lock.write({path!r})
        print(*[c.implementation for c in lock.choices if c.op == "scan"])
        """
    ) == ["scan/acme.fast"]
    assert _run(
        f"""
        scan.implementation("zeta.new", priority=900)(lambda q: "zeta")
        print(scan(f4))
        runtime = opmux.default_runtime()
        runtime.freeze(opmux.Lockfile.read({path!r}))
        print(scan(f4), scan(f4))
        with opmux.report() as calls:
            print(scan(f8))
        print(calls[-1].fell_back)
        """
    ) == ["zeta", "acme", "acme", "zeta", "True"]


def test_a_lockfile_that_names_an_unknown_implementation_is_refused(tmp_path):
    path = str(tmp_path / "opmux.lock")
    _run(f"scan(f4); opmux.default_runtime().lock().write({path!r})")
    (said,) = _run(
        f"""
        scan(f4)
        fast.withdraw()
        try:
            opmux.default_runtime().check_lock(opmux.Lockfile.read({path!r}))
        except opmux.Error as error:
            print("scan/acme.fast" in str(error))
        """
    )
    assert said == "True"


SHADOWED = """
    import numpy as np
    import opmux

    @opmux.dispatchable(pure=BODY_PURE)
    def scan(q):
        return q * np.float32(2)

    @scan.implementation("acme.fast", pure=True)
    def fast(q):
        return RESULT

    opmux.default_runtime().load_policy("opmux: 1\\nshadow: {every: 1, share: 1}\\n")
    q = np.ones(4, "f4")
    results = [scan(q) for _ in range(20)]
    found = {i.implementation: i for i in opmux.health().shadow.implementations}["scan/acme.fast"]
    breakers = [b.implementation for b in opmux.health().breakers]
    print(found.compared > 0, found.mismatches, list(found.skipped) or "-",
          "scan/acme.fast" in breakers, scan.last, sep="|")
"""


@pytest.mark.parametrize(
    ("pure", "result", "printed"),
    [
        (True, "q + q", "True|0|-|False|scan/acme.fast"),
        (True, "q + 2", "True|1|-|True|scan/own.body"),
        (True, "(q + q)[:3]", "True|1|-|True|scan/own.body"),
        (True, "[q + q]", "True|0|-|False|scan/acme.fast"),
        (True, "'text'", "False|0|['opaque']|False|scan/acme.fast"),
        (False, "q + 2", "False|0|['opaque']|False|scan/acme.fast"),
    ],
)
def test_results_that_are_tensors_are_compared_with_the_body(pure, result, printed):
    code = SHADOWED.replace("BODY_PURE", str(pure)).replace("RESULT", result)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == printed
