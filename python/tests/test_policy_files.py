"""Policy texts and files: loaded, refused, rolled back and reloaded."""

import numpy as np
import pytest

import opmux

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")
RED = "opmux: 1\nrules:\n  - {name: red, op: pick, prefer: [pick/red.v1]}\n"
GREEN = "opmux: 1\nrules:\n  - {name: green, op: pick, prefer: [pick/green.v1]}\n"


def add_pick(runtime):
    runtime.define("pick(out Tensor y[..., N], Tensor x[..., N])")
    for name in ("blue.v1", "green.v1", "red.v1"):
        opmux.implementation("pick", name, kind="vendor", priority=100, runtime=runtime)(
            lambda x, *, out: None
        )
    return runtime


@pytest.fixture
def world(runtime):
    return add_pick(runtime)


def picked(world):
    with opmux.report(world) as calls:
        world.op("pick")(X)
    return calls.implementation.partition("/")[2]


def test_a_text_comes_into_force_and_goes_back(world):
    assert picked(world) == "blue.v1"
    world.load_policy(RED, "red.yaml")
    assert picked(world) == "red.v1"
    state = world.policy_state()
    assert (state.name, state.version, state.rules) == ("red.yaml", 1, 1)
    world.load_policy(GREEN)
    assert picked(world) == "green.v1"
    world.rollback()
    assert picked(world) == "red.v1"


def test_a_refused_text_names_its_place_and_changes_nothing(world):
    world.load_policy(RED)
    with pytest.raises(opmux.InvalidArgument, match="broken.yaml:3:"):
        world.load_policy("opmux: 1\nrules:\n  - {op: pikc, strict: true}\n", "broken.yaml")
    assert picked(world) == "red.v1"
    assert world.policy_state().refused == 1
    assert "broken.yaml:3:" in world.policy_state().last_refusal


def test_listeners_and_validators_are_python_functions(world):
    heard = []
    world.on_policy(heard.append)
    world.add_validator(lambda policy: "no green" if policy.rules[0].name == "green" else None)
    world.load_policy(RED)
    with pytest.raises(opmux.InvalidArgument, match="no green"):
        world.load_policy(GREEN)
    assert [change.in_force for change in heard] == [True, False]
    assert heard[1].reason == "no green"

    def raises(policy):
        raise ValueError("oh")

    world.add_validator(raises)
    with pytest.raises(opmux.Error, match="oh"):
        world.load_policy(RED)


def test_a_file_is_followed_by_ticks(tmp_path):
    sources = opmux.SourceOptions()
    sources.config = str(tmp_path / "policy.yaml")
    sources.own_thread = sources.last_known_good = False
    (tmp_path / "policy.yaml").write_text("opmux: 1\ndefaults: {prefer: [vendor]}\n")
    world = add_pick(opmux.create_runtime(environment=[], backends=False, sources=sources))
    world.tick(1.0)
    (tmp_path / "policy.yaml").write_text(GREEN)
    world.tick(2.0)
    world.tick(2.05)
    assert picked(world) == "green.v1"
    assert {s.key: s.value for s in world.settings()}["mode"] == "hot_reload"


def test_a_runtime_with_a_thread_and_a_listener_can_go_at_any_moment(tmp_path):
    for i in range(5):
        sources = opmux.SourceOptions()
        sources.config = str(tmp_path / "policy.yaml")
        sources.last_known_good = False
        (tmp_path / "policy.yaml").write_text("opmux: 1\n")
        world = opmux.create_runtime(environment=[], backends=False, sources=sources)
        world.on_policy(lambda change: sum(range(10000)))
        (tmp_path / "policy.yaml").write_text(
            f"opmux: 1\ndefaults: {{strict: {i % 2 == 0}}}\n".lower()
        )
        del world


def test_a_text_is_checked_without_coming_into_force(world):
    text = (
        "opmux: 1\nrules:\n"
        "  - {name: red, op: pick, prefer: [pick/red.v1]}\n"
        "  - {name: elsewhere, op: pick, when: N > 64, prefer: [pick/zeta.v1]}\n"
    )
    found = world.check_policy(text, "p.yaml")
    assert found.rules == 2
    assert [(f.code, f.where, f.rule) for f in found.findings if f.code == "policy.unmatched"] == [
        ("policy.unmatched", "p.yaml:4", "elsewhere")
    ]
    changes = [(c.op, c.when, c.before, c.after) for c in found.changes]
    assert ("pick", "", "pick/blue.v1", "pick/red.v1") in changes
    assert '"red" (p.yaml:3)' in found.changes[0].by and '"rules":2' in found.to_json()
    assert picked(world) == "blue.v1"
    with pytest.raises(opmux.InvalidArgument, match="p.yaml:4:"):
        world.check_policy(text, "p.yaml", strict_names=True)
    machine = [op for op in world.list() if op.name == "pick"]
    with pytest.raises(opmux.InvalidArgument, match="zeta"):
        world.check_policy(text, "p.yaml", machine=machine)
    assert world.check_policy(RED, machine=machine).changes[0].after == "pick/red.v1"


def test_rules_for_other_machines_are_counted_and_shown(world):
    world.load_policy("opmux: 1\nrules:\n  - {name: far, op: pick, deny: [pick/zeta.v1]}\n", "p")
    state = world.policy_state()
    assert (state.unmatched, state.unmatched_rules) == (1, ['"far" (p:3)'])
    shown = {setting.key: setting for setting in world.settings()}["file.unmatched"]
    assert shown.value == "1" and "far" in shown.origin


def test_a_condition_is_read_as_files_have_it(world):
    when = opmux.Condition.parse("N % 16 == 0")
    assert str(when) == "N % 16 == 0"
    rule = opmux.rule(op="pick", when=when, prefer=["pick/red.v1"])
    world.set_policy(opmux.policy(rules=[rule]))
    assert picked(world) == "blue.v1"
    with opmux.expect("pick/red.v1", runtime=world):
        world.op("pick")(np.ones((2, 32), "f4"))
    with pytest.raises(opmux.InvalidArgument) as raised:
        opmux.Condition.parse("N >> 4")
    assert raised.value.reason == "policy.when"


def test_a_file_that_others_can_write_is_refused_on_request(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text("opmux: 1\ndefaults: {prefer: [vendor]}\n")
    sources = opmux.SourceOptions()
    sources.config, sources.last_known_good = str(file), False

    def create(trust):
        return opmux.create_runtime(
            environment=[], backends=False, sources=sources, policy_trust=trust
        )

    tmp_path.chmod(0o755)
    file.chmod(0o644)
    assert create("refuse").policy_state().version == 1
    file.chmod(0o666)
    assert create("warn").policy_state().version == 1
    with pytest.raises(opmux.InvalidArgument, match="chmod go-w") as raised:
        create("refuse")
    assert raised.value.reason == "policy.writable_by_others"
    with pytest.raises(ValueError, match="'warn' or 'refuse'"):
        create("perhaps")
