"""Specialization points: typed questions that a backend may answer."""

import numpy as np
import pytest

import opmux

CPU = (1, 0)


def point(runtime, signature="gemm.tile_n(Device) -> int"):
    return opmux.Point(signature, runtime)


def backend(runtime, name, priority=100):
    """Registers an implementation, because a backend exists only once it has one."""
    opmux.implementation("softmax", f"{name}.v1", priority=priority, runtime=runtime)(
        lambda x, scale, *, out: None
    )


def test_nobody_answers(runtime):
    tile = point(runtime)
    assert tile.ask(CPU) is None
    assert tile.ask_or(lambda device: device[0] + 40, CPU) == 41


@pytest.mark.parametrize("answer", [64, 0, -1])
def test_an_answer_is_an_answer(runtime, answer):
    tile = point(runtime)
    backend(runtime, "mine")
    tile.answer("mine")(lambda device: answer)
    assert tile.ask(CPU) == answer
    assert tile.ask_or(lambda device: 1 / 0, CPU) == answer


def test_none_is_no_answer(runtime):
    tile = point(runtime)
    backend(runtime, "mine")
    tile.answer("mine")(lambda device: None)
    assert tile.ask(CPU) is None and tile.ask_or(lambda device: 7, CPU) == 7


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_is_no_answer(runtime):
    tile = point(runtime)
    backend(runtime, "mine")

    @tile.answer("mine")
    def wrong(device):
        raise RuntimeError("no idea")

    assert tile.ask(CPU) is None


@pytest.mark.parametrize(
    "types,args,answer",
    [
        ("int, int -> int", (2, 3), 6),
        ("float -> float", (0.5,), 0.25),
        ("bool -> bool", (True,), False),
        ("str -> str", ("gemm",), "gemm!"),
        ("Device, str, bool -> Device", (CPU, "x", False), (1, 7)),
        (" -> int", (), 11),
    ],
)
def test_types(runtime, types, args, answer):
    inputs, _, output = types.partition("->")
    asked = opmux.Point(f"mine.question({inputs.strip()}) -> {output.strip()}", runtime)
    seen = []
    backend(runtime, "mine")
    asked.answer("mine")(lambda *given: seen.append(given) or answer)
    assert asked.ask(*args) == answer and seen == [args]


@pytest.mark.parametrize("args", [(), (CPU, CPU)])
def test_a_wrong_number_of_arguments(runtime, args):
    with pytest.raises(TypeError, match="takes 1 arguments"):
        point(runtime).ask(*args)


@pytest.mark.parametrize("value", ["cpu", None, 1.5])
def test_a_wrong_type(runtime, value):
    with pytest.raises((TypeError, RuntimeError)):
        point(runtime).ask(value)


@pytest.mark.parametrize("text", ["gemm.tile_n", "gemm.tile_n(Device)", "gemm.tile_n(What) -> int"])
def test_nonsense(runtime, text):
    with pytest.raises((opmux.Error, ValueError)):
        opmux.Point(text, runtime).ask(CPU)


def test_another_signature_of_the_same_name_is_refused(runtime):
    point(runtime)
    with pytest.raises(opmux.Error):
        point(runtime, "gemm.tile_n(Device, int) -> int")


def test_the_default_runtime():
    asked = opmux.point("tests.depth(int) -> int")
    assert asked.ask(3) is None and "tests.depth" in repr(asked)


def test_calls_are_not_concerned(runtime):
    point(runtime)
    x = np.ones((2, 4), "f4")
    with opmux.expect("softmax/simd.*", runtime=runtime):
        runtime.op("softmax")(x)


@pytest.mark.truth
def test_points_are_listed_and_explained(runtime):
    tile = point(runtime)
    backend(runtime, "mine", priority=120)
    tile.answer("mine")(lambda device: 64 if device == CPU else None)
    (listed,) = [one for one in opmux.points(runtime) if one.name == "gemm.tile_n"]
    assert listed.signature == tile.signature and listed.declared
    assert [(one.backend, one.verdict) for one in listed.candidates] == [("mine", "next")]
    asked = tile.explain(CPU)
    assert asked.answer == "64" and asked.candidates[0].verdict == "chosen"
    assert "mine   chosen" in str(asked)
    assert tile.explain((2, 0)).candidates[0].verdict == "no answer"


@pytest.mark.truth
def test_a_point_asked_with_another_type_is_refused(runtime):
    tile = point(runtime)
    tile.signature = "gemm.tile_n(Device) -> float"
    with pytest.raises(opmux.AlreadyExists) as caught:
        tile.ask(CPU)
    assert caught.value.reason == "point.signature"


@pytest.mark.truth
def test_an_answer_of_another_type_is_logged(runtime, caplog):
    tile = opmux.Point("tests.mistyped() -> int", runtime)
    tile.answer("reference")(lambda: "many")
    assert tile.ask() is None
    assert [r.opmux_code for r in caplog.records] == ["point.answer"]
