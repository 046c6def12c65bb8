"""Keyword arguments whose readers no other test would miss; see tools/surface."""

import os
import subprocess
import sys

import numpy as np
import pytest

import opmux

pytestmark = pytest.mark.truth


def unchanged(x, factor, mode):
    return x


def info(runtime, implementation):
    return next(
        each for op in runtime.list() for each in op.implementations if each.id == implementation
    )


@pytest.mark.parametrize(
    "promise", ["atomic_outputs", "deterministic", "batch_invariant", "capture_safe"]
)
def test_promises_of_an_implementation_are_listed(world, promise):
    opmux.implementation("twice", "mine.v1", runtime=world, **{promise: True})(unchanged)
    assert info(world, "twice/mine.v1").promises == [promise]
    assert info(world, "twice/own.body").promises == []


def test_serial_is_refused_because_python_functions_have_no_prepared_state(world):
    with pytest.raises(
        opmux.InvalidArgument, match="twice/mine.v1: serial= .* use a lock"
    ) as caught:
        opmux.implementation("twice", "mine.v1", serial=True, runtime=world)(unchanged)
    assert caught.value.reason == "python.option"


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (
            opmux.PluginOptions,
            {
                "folders": ["/opt/plugins"],
                "trust": "digest",
                "keyring": "/opt/keys",
                "digests": ["12ab"],
                "sealed": True,
                "probe": False,
                "max_bytes": 77,
                "require_confinement": True,
            },
        ),
        (
            opmux.StateOptions,
            {"folder": "/var/opmux", "crash_journal": "on", "state_page": True},
        ),
        (
            opmux.RecordOptions,
            {
                "folder": "/var/opmux",
                "inputs": True,
                "max_files": 3,
                "max_bytes": 77,
                "dump": "softmax:*:1",
            },
        ),
    ],
)
def test_options_keep_each_keyword(kind, given):
    usual, made = kind(), kind(**given)
    for name, value in given.items():
        assert getattr(made, name) == value != getattr(usual, name), name


def test_names_of_texts_appear_in_refusals(world, runtime):
    world.op("twice")(np.ones(3, "f4"))
    with pytest.raises(opmux.InvalidArgument, match=r"own\.yaml:1:"):
        world.load_policy("opmux: 2", name="own.yaml")
    with pytest.raises(opmux.InvalidArgument, match=r"own\.lock"):
        opmux.Lockfile.parse("not a lockfile", name="own.lock")
    for refuse in (runtime.freeze, runtime.check_lock):
        with pytest.raises(opmux.Failed, match=r"own\.lock no longer matches"):
            refuse(world.lock(), name="own.lock")


def test_a_selector_that_fails_is_named(world, caplog):
    world.set_selector(lambda op, accepted, facts: 1 / 0, name="shortest")
    world.op("twice")(np.ones(3, "f4"))
    assert any("shortest failed" in record.getMessage() for record in caplog.records)


def test_threads_of_a_runtime_are_limited():
    made = opmux.create_runtime(environment=[], threads=3)
    before = len(os.listdir("/proc/self/task"))
    made.op("rms_norm")(np.ones((2048, 2048), "f4"))
    assert len(os.listdir("/proc/self/task")) - before == 2


def define_by(function, schema, checked):
    """Defines `schema` with one of the four functions that do; returns the runtime."""
    owner = opmux if function.startswith("opmux.") else opmux.create_runtime(environment=[])
    name = function.partition(".")[2]
    given = [schema] if name == "define_all" else schema
    if checked:
        getattr(owner, name)(given, data_checked=True)
    else:
        getattr(owner, name)(given)
    return opmux.default_runtime() if owner is opmux else owner


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(
    "function", ["opmux.define", "opmux.define_all", "Runtime.define", "Runtime.define_all"]
)
def test_wrong_data_of_a_data_checked_operator_is_an_error_of_the_call(function, checked):
    op = f"{function.replace('.', '_').lower()}_{'checked' if checked else 'plain'}"
    runtime = define_by(function, f"{op}(out Tensor y[N], Tensor x[N])", checked)

    @opmux.implementation(op, "reads.data", priority=200, runtime=runtime)
    def reads(x, *, out):
        raise opmux.InvalidArgument("x holds an index that is out of range")

    @opmux.implementation(op, "ignores.data", kind="reference", runtime=runtime)
    def ignores(x, *, out):
        out[:] = x

    x = np.ones(4, "f4")
    if checked:
        with pytest.raises(opmux.InvalidArgument, match="out of range"):
            runtime.op(op)(x)
    else:
        with opmux.report(runtime) as calls:
            runtime.op(op)(x)
        assert calls.implementation == f"{op}/ignores.data"


FREEZES = """
import opmux

other = opmux.create_runtime(policy=opmux.policy(prefer=["reference"]))
try:
    opmux.freeze(other.freeze())
except opmux.Failed as refused:
    print(refused)
print(opmux.freeze().choices)
"""


def test_freeze_refuses_a_lockfile_of_another_policy():
    done = subprocess.run(
        [sys.executable, "-c", FREEZES], capture_output=True, text=True, check=True
    )
    assert "another policy is in force" in done.stdout
    assert done.stdout.endswith("\n[]\n"), "without a lockfile it freezes what was called so far"


def test_replay_tries_the_named_implementations_and_looks_for_a_smaller_call(tmp_path):
    def kernel(x, scale, *, out):
        raise RuntimeError("out of luck")

    record = opmux.RecordOptions(folder=str(tmp_path), inputs=True)
    recorder = opmux.create_runtime(environment=[], backends=False, record=record)
    opmux.implementation("softmax", "replayed.v1", kind="default", runtime=recorder)(kernel)
    x = np.zeros((4, 64), "f4")
    recorder.op("softmax")(x, out=np.empty_like(x))
    (file,) = tmp_path.glob("*.opmux-replay")
    mine = opmux.implementation("softmax", "replayed.v1", kind="default", priority=0)(kernel)
    try:
        assert opmux.replay(file, ["softmax/reference.scalar"]).verdict == "agrees"
        assert opmux.replay(file).smaller_arguments == ""
        assert "x=f32[1,1]" in opmux.replay(file, minimize=True).smaller_arguments
    finally:
        mine.withdraw()


LIMITED = """
import os
import numpy as np
import opmux

x = np.ones((2048, 2048), "f4")


def started_threads():
    before = len(os.listdir("/proc/self/task"))
    opmux.ops.rms_norm(x)
    return len(os.listdir("/proc/self/task")) - before


opmux.ops.rms_norm(x[:1])
with opmux.OPTIONS(max_threads=1):
    limited = started_threads()
with opmux.OPTIONS(tag="layer.3"), opmux.report() as calls:
    opmux.ops.rms_norm(x[:1])
print(limited, started_threads(), calls.implementation)
"""


@pytest.mark.parametrize("function", ["options", "scope"])
def test_options_of_calls_are_their_tag_and_most_threads(function, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "opmux: 1\n"
        "rules:\n"
        "  - {op: rms_norm, when: 'glob(tag, \"layer.*\")', prefer: [reference]}\n"
    )
    own = {"OPMUX_CONFIG": str(policy), "OPMUX_NUM_THREADS": "3", "OPMUX_STATE_DIR": str(tmp_path)}
    code = LIMITED.replace("OPTIONS", function)
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | own, capture_output=True, text=True
    )
    assert done.stdout == "0 2 rms_norm/reference.scalar\n", done.stderr


def test_a_thread_scope_applies_its_policy_to_its_runtime():
    made, x = opmux.create_runtime(environment=[]), np.ones((2, 64), "f4")

    def chosen(runtime):
        with opmux.report(runtime) as calls:
            runtime.op("rms_norm")(x)
        return calls.implementation

    with opmux.thread_scope(opmux.policy(prefer=["reference"]), runtime=made):
        assert chosen(made) == "rms_norm/reference.scalar"
        assert chosen(opmux.default_runtime()) != "rms_norm/reference.scalar"
    assert chosen(made) != "rms_norm/reference.scalar"
