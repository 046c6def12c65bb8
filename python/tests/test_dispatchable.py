"""Dispatchable functions: the choice, its reasons, and how rarely verifiers run."""

import copy
import logging
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from dispatchable_cases import Counted, counted

import opmux


@opmux.dispatchable(name="test_module_level")
def module_level(x):
    return "body"


def run(code, **environment):
    env = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_body_is_the_last_candidate(scan):
    with opmux.expect("test_scan/own.body"):
        assert scan(1) == "body"
    assert scan.last == "test_scan/own.body"
    assert scan.__name__ == "test_scan"


def test_an_implementation_stands_in_for_the_body(scan):
    @opmux.implementation("test_scan", "acme.fast")
    def fast(q, k=None, scale=1.0):
        return ("acme", q, k, scale)

    with opmux.expect("test_scan/acme.fast"):
        assert scan(1, k=2) == ("acme", 1, 2, 1.0)
    assert scan(1, scale=3.0) == ("acme", 1, None, 3.0)
    assert scan.last == "test_scan/acme.fast"
    fast.withdraw()
    with opmux.expect("test_scan/own.body"):
        assert scan(1) == "body"


def test_priority_orders_then_the_id(scan):
    scan.implementation("beta.one")(lambda q: "beta")
    scan.implementation("alpha.one")(lambda q: "alpha")
    assert scan(1) == "alpha"
    scan.implementation("beta.two", priority=140)(lambda q: "beta two")
    assert scan(1) == "beta two"
    assert scan.last == "test_scan/beta.two"


def test_scopes_say_who_may(scan):
    scan.implementation("acme.fast")(lambda q: "acme")
    scan.implementation("zeta.slow")(lambda q: "zeta")
    assert scan(1) == "acme"
    with opmux.deny("test_scan/acme.*"):
        assert scan(1) == "zeta"
    with opmux.require("reference"):
        assert scan(1) == "body"
    with opmux.prefer("test_scan/zeta.*"):
        assert [scan(1), scan.last] == ["zeta", "test_scan/zeta.slow"]
    with opmux.scope(per_op={"test_scan": ["test_scan/zeta.*", "reference"]}):
        assert scan(1) == "zeta"
    assert scan(1) == "acme"
    with opmux.deny("test_scan/*"), pytest.raises(opmux.NoCandidate, match=r"policy\.denied"):
        scan(1)


def test_a_policy_of_the_runtime_takes_effect_at_once(scan):
    scan.implementation("acme.fast")(lambda q: "acme")
    assert scan(1) == "acme"
    opmux.set_policy(opmux.policy(deny=["test_scan/acme.*"]))
    try:
        assert scan(1) == "body"
        assert scan.last == "test_scan/own.body"
    finally:
        opmux.reset_policy()
    assert scan(1) == "acme"


def test_a_thread_scope_counts_too(scan):
    scan.implementation("acme.fast")(lambda q: "acme")
    assert scan(1) == "acme"
    with opmux.thread_scope(require=["reference"]):
        assert scan(1) == "body"
    assert scan(1) == "acme"


@pytest.mark.parametrize("yes", [True, (True, None)])
def test_verifiers_accept(scan, yes):
    @scan.implementation("acme.fast")
    def fast(q):
        return "acme"

    fast.verifier(lambda q: yes)
    assert scan(1) == "acme"


@pytest.mark.parametrize("no", ["too small", (False, "too small")])
def test_verifiers_refuse_with_a_sentence(scan, no):
    @scan.implementation("acme.fast")
    def fast(q):
        return "acme"

    fast.verifier(lambda q: no)
    with opmux.expect("test_scan/own.body"):
        assert scan(1) == "body"
    refused = {one.id: one for one in scan.explain(1).candidates}["test_scan/acme.fast"]
    assert (refused.verdict, refused.code, refused.reason) == (
        "refused", "verify.refused", "too small")  # fmt: skip


@pytest.mark.parametrize("answer", [None, False, 0, (False, None), (True, "why"), 1 / 3])
def test_anything_else_is_a_broken_verifier(scan, answer):
    @scan.implementation("acme.fast")
    def fast(q):
        return "acme"

    fast.verifier(lambda q: answer)
    with opmux.expect("test_scan/own.body"):
        scan(1)
    codes = {one.id: one.code for one in scan.explain(1).candidates}
    assert codes["test_scan/acme.fast"] == "verify.broken"


def test_an_exception_in_a_verifier_is_told_apart(scan):
    @scan.implementation("acme.fast")
    def fast(q):
        return "acme"

    fast.verifier(lambda q: q.no_such_thing)
    with opmux.expect("test_scan/own.body"):
        scan(1)
    why = {one.id: (one.code, one.reason) for one in scan.explain(1).candidates}
    assert why["test_scan/acme.fast"][0] == "verify.broken"
    assert "AttributeError" in why["test_scan/acme.fast"][1]


def test_availability_is_asked_once_and_lazily(scan):
    asked = Counted(lambda: "no such device")
    scan.implementation("acme.fast", available=asked)(lambda q: "acme")
    assert asked.asked == 0
    for i in range(3):
        with opmux.expect("test_scan/own.body"):
            assert scan(i) == "body"
    assert asked.asked == 1
    why = {one.id: (one.code, one.reason) for one in scan.explain(1).candidates}
    assert why["test_scan/acme.fast"] == ("backend.unavailable", "no such device")


def test_an_exception_is_failed_with_its_cause(scan):
    @scan.implementation("acme.fast")
    def fast(q):
        raise ValueError("out of luck")

    for _ in range(2):  # the second call uses the cached decision
        with pytest.raises(
            opmux.Failed, match=r"acme\.fast failed: ValueError: out of luck"
        ) as raised:
            scan(1)
        assert isinstance(raised.value.__cause__, ValueError)
        assert raised.value.__cause__.__traceback__ is not None
    assert scan.stats()[1].failed == 2


def test_one_with_atomic_outputs_falls_back(scan):
    @scan.implementation("acme.fast", atomic_outputs=True)
    def fast(q):
        raise ValueError("out of luck")

    for _ in range(2):
        with opmux.report() as calls:
            assert scan(1) == "body"
        assert (calls.implementation, calls.fell_back) == ("test_scan/own.body", True)
        assert "out of luck" in calls.reason
        assert scan(1) == "body"
    with opmux.strict(), pytest.raises(opmux.Failed):
        scan(1)


def test_declining_goes_to_the_next(scan):
    @scan.implementation("acme.fast")
    def fast(q):
        if q == 1:
            raise opmux.Declined("not one")
        return NotImplemented if q == 2 else "acme"

    for _ in range(2):
        assert [scan(0), scan(1), scan(2)] == ["acme", "body", "body"]
    with opmux.strict():
        assert scan(0) == "acme"
        with pytest.raises(opmux.Declined, match="not one"):
            scan(1)
        with pytest.raises(opmux.Declined, match="NotImplemented"):
            scan(2)
    assert scan.stats()[1].declined == 6


def test_the_body_raises_what_it_raises():
    @opmux.dispatchable
    def test_raises(x):
        raise KeyError(x)

    for _ in range(2):
        with pytest.raises(KeyError):
            test_raises("a")
    with opmux.report() as calls, pytest.raises(KeyError):
        test_raises("a")
    assert (calls.implementation, calls.outcome) == ("test_raises/own.body", "failed")


def test_interrupts_pass_through(scan):
    @scan.implementation("acme.fast", atomic_outputs=True)
    def fast(q):
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            scan(1)
    assert scan.last == "test_scan/acme.fast"


def test_each_reason_is_logged_once(scan, caplog):
    counted(scan, lambda q: "never" if q else "not so")
    with caplog.at_level(logging.INFO, "opmux"):
        for i in range(12):
            assert scan(i % 4) == "body"
    lines = [r.getMessage() for r in caplog.records if "acme.fast" in r.getMessage()]
    assert sorted(lines) == [
        "verify.refused: test_scan/acme.fast: never",
        "verify.refused: test_scan/acme.fast: not so",
    ]
    assert scan.stats()[1].refused == 4


def test_explains_as_operators_do(scan):
    counted(scan, lambda q, k=None: q.shape[0] > 4 or "too few rows")
    scan.implementation("zeta.slow")(lambda q: "zeta")
    text = str(scan.explain(np.zeros((2, 3), "f4")))
    assert "float32[2,3]" in text
    assert "verify.refused: too few rows" in text
    explanation = scan.explain(np.zeros((5, 3), "f4"))
    assert [(one.id, one.verdict) for one in explanation.candidates] == [
        ("test_scan/acme.fast", "chosen"),
        ("test_scan/zeta.slow", "accepted"),
        ("test_scan/own.body", "last resort"),
    ]
    facts = ["type(q)", "q.shape[0]", "capturing", "deterministic"]
    assert explanation.depends_on == facts
    assert explanation.chosen == "test_scan/acme.fast"


def test_reports_say_whether_it_was_remembered(scan):
    with opmux.report() as calls:
        scan(1)
        scan(2)
    assert [one.cached for one in calls] == [False, True]
    assert calls.implementations() == ["test_scan/own.body"] * 2


def test_counts_calls(scan):
    for _ in range(5):
        scan(1)
    assert scan.calls == {"test_scan/own.body": 5}
    assert scan.stats()[0].calls == 5


def test_is_listed_with_its_implementations(scan):
    scan.implementation("acme.fast")(lambda q: 1)
    listed = {one.name: one for one in opmux.list_operators()}["test_scan"]
    assert {one.id for one in listed.implementations} == {
        "test_scan/own.body", "test_scan/acme.fast"}  # fmt: skip


def test_works_as_a_method():
    class Layer:
        factor = 3

        @opmux.dispatchable(name="test_forward")
        def forward(self, x):
            return self.factor * x

    with opmux.expect("test_forward/own.body"):
        assert Layer().forward(2) == 6


def test_is_pickled_and_copied_by_name():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.deepcopy(module_level) is module_level


def test_a_name_that_another_function_has_is_refused(scan):
    with pytest.raises(opmux.AlreadyExists):
        opmux.dispatchable(name="test_scan")(lambda q: None)


def test_recursion_and_nested_calls(scan):
    @scan.implementation("acme.fast")
    def fast(q):
        return "end" if q == 0 else scan(q - 1)

    with opmux.expect("test_scan/acme.fast") as calls:
        assert scan(3) == "end"
    assert len(calls) == 4


def test_with_a_schema_it_is_an_operator():
    @opmux.dispatchable("test_twice(out Tensor y[N], Tensor x[N])")
    def test_twice(x):
        return x * 2

    x = np.arange(4, dtype="f4")
    with opmux.expect("test_twice/own.body"):
        np.testing.assert_array_equal(test_twice(x), x * 2)
    assert test_twice.__name__ == "test_twice"

    @opmux.implementation("test_twice", "acme.add")
    def add(x, *, out):
        np.add(x, x, out=out)

    with opmux.expect("test_twice/acme.add"):
        np.testing.assert_array_equal(opmux.ops.test_twice(x), x * 2)
    add.withdraw()


PROGRAM = """
    import opmux

    @opmux.dispatchable
    def scan(q):
        return "body"

    @scan.implementation("acme.fast")
    def fast(q):
        return "acme"

    print(scan(1), scan(1))
"""


@pytest.mark.parametrize(
    ("environment", "printed"),
    [
        ({}, "acme acme"),
        ({"OPMUX_DISABLE": "1"}, "body body"),
        ({"OPMUX_BACKEND_ACME": "0"}, "body body"),
        ({"OPMUX_BACKEND_ACME": "off"}, "body body"),
        ({"OPMUX_BACKEND_ACME": "true"}, "acme acme"),
        ({"OPMUX_PREFER": "reference"}, "body body"),
    ],
)
def test_the_environment_has_its_say(environment, printed):
    assert run(PROGRAM, **environment) == printed


def test_backends_are_imported_at_the_first_call(tmp_path, monkeypatch):
    (tmp_path / "late_backend.py").write_text(
        'import opmux\n@opmux.implementation("test_lazy", "late.one")\ndef one(q):\n    return 1\n'
    )
    (tmp_path / "bad_backend.py").write_text("raise OSError('no library')\n")
    monkeypatch.syspath_prepend(tmp_path)

    @opmux.dispatchable(backends=["bad_backend", "late_backend"])
    def test_lazy(q):
        return "body"

    assert "late_backend" not in sys.modules
    with opmux.expect("test_lazy/late.one"):
        assert test_lazy(1) == 1
    states = {plugin.name: plugin.loaded for plugin in opmux.plugins()}
    assert (states["bad_backend"], states["late_backend"]) == (False, True)


def test_entry_points_of_the_function_are_loaded_at_the_first_call(tmp_path, monkeypatch):
    (tmp_path / "entry_backend.py").write_text(
        "import opmux\ndef register(runtime):\n"
        '    opmux.implementation("test_entry", "entry.one")(lambda q: 1)\n'
    )
    info = tmp_path / "entry_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: entry-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[opmux.plugins.test_entry]\none = entry_backend:register\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    @opmux.dispatchable
    def test_entry(q):
        return "body"

    with opmux.expect("test_entry/entry.one"):
        assert test_entry(1) == 1


def test_a_new_default_runtime_decides_anew():
    code = """
        import opmux

        @opmux.dispatchable
        def scan(q):
            return "body"

        scan.implementation("acme.fast")(lambda q: "acme")
        opmux.set_policy(opmux.policy(deny=["scan/acme.*"]))
        before = scan(1)
        opmux.reset_default_runtime()
        print(before, scan(1), scan(1))
    """
    assert run(code) == "body acme acme"


torch = pytest.importorskip("torch")


def test_autograd_goes_through_what_runs(scan):
    scan.implementation("acme.fast")(lambda q: q * 2)
    x = torch.ones(2, requires_grad=True)
    with opmux.expect("test_scan/acme.fast"):
        scan(x).sum().backward()
    scan(x).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_works_inside_of_a_compiled_function(scan):
    scan.implementation("acme.fast")(lambda q: q + 1)

    @torch.compile(backend="eager")
    def compiled(x):
        return scan(x * 2) * 3

    with opmux.expect("test_scan/acme.fast"):
        assert compiled(torch.ones(2)).tolist() == [9, 9]
    assert compiled(torch.ones(3)).tolist() == [9, 9, 9]
    assert scan.last == "test_scan/acme.fast"


def test_does_not_import_torch():
    assert run(PROGRAM + "    import sys\n    print('torch' in sys.modules)").endswith("False")
