"""Recording of failed calls, and their replay."""

import numpy as np
import pytest

import opmux


@pytest.fixture
def recorded(tmp_path):
    """A runtime with an implementation that is wrong for odd sizes, and its recordings."""
    return opmux.create_runtime(
        environment=[],
        backends=False,
        record=opmux.RecordOptions(folder=str(tmp_path / "records"), inputs=True),
    )


def _register(runtime, body):
    return opmux.implementation("softmax", "acme.v1", kind="default", runtime=runtime)(body)


def _files(tmp_path):
    return sorted((tmp_path / "records").glob("*.opmux-replay"))


def test_a_call_that_failed_is_recorded_and_fails_again(recorded, tmp_path):
    def kernel(x, scale, *, out):
        raise RuntimeError("out of luck")

    _register(recorded, kernel)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    recorded.op("softmax")(x, out=np.empty_like(x))
    state = recorded.recordings()
    assert state.written == 1 and state.inputs and state.problem == ""
    (file,) = _files(tmp_path)
    report = recorded.replay(str(file))
    assert report.verdict == "fails" and report.cause == "failed"
    assert report.recorded == "softmax/acme.v1" and "x=f32[4,6]" in report.arguments
    assert "out of luck" in report.implementations[0].text
    assert "softmax/acme.v1" in str(report) and '"verdict":"fails"' in report.to_json()
    with_reference = recorded.replay(str(file), ["softmax/reference.scalar"])
    assert with_reference.verdict == "agrees" and not with_reference.other_values


def test_the_smallest_call_is_looked_for(recorded, tmp_path):
    def kernel(x, scale, *, out):
        if x.shape[-1] > 2:
            raise RuntimeError("out of luck")
        out[...] = 0.5

    _register(recorded, kernel)
    x = np.zeros((4, 64), np.float32)
    recorded.op("softmax")(x, out=np.empty_like(x))
    report = recorded.replay(str(_files(tmp_path)[0]), minimize=True)
    assert "x=f32[1,3]" in report.smaller_arguments and report.tried > 0
    smaller = tmp_path / "smaller.opmux-replay"
    smaller.write_bytes(report.smaller)
    assert "x=f32[1,3]" in recorded.replay(str(smaller)).arguments


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(opmux.NotFound):
        opmux.replay(tmp_path / "nothing")
    (tmp_path / "text").write_text("text")
    with pytest.raises(opmux.InvalidArgument) as refused:
        opmux.replay(tmp_path / "text")
    assert refused.value.reason == "replay.file"
    assert opmux.recordings().folder == ""


@pytest.mark.truth
def test_a_dump_keeps_calls_with_their_results(tmp_path):
    record = opmux.RecordOptions(
        folder=str(tmp_path / "records"), inputs=True, dump="softmax:layer.3:1"
    )
    assert record.dump == "softmax:layer.3:1"
    runtime = opmux.create_runtime(environment=[], backends=False, record=record)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    for layer in ("layer.3", "layer.4"):
        for _ in range(3):
            with opmux.scope(tag=layer, runtime=runtime):
                y = runtime.op("softmax")(x)
    (file,) = _files(tmp_path)
    assert file.name.startswith("softmax.layer.3.1.p")
    assert file.read_bytes().endswith(y.tobytes() + x.tobytes())
    report = runtime.replay(str(file))
    assert report.verdict == "agrees" and report.cause == "dumped" and not report.other_values
    with pytest.raises(opmux.InvalidArgument) as caught:
        opmux.create_runtime(environment=[], record=opmux.RecordOptions(dump="softmax"))
    assert caught.value.reason == "record.dump"
