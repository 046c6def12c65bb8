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
