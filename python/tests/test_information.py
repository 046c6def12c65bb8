"""The functions that query a runtime."""

import logging

import numpy as np
import pytest

import opmux

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")
STANDARD = {
    "attention", "embedding", "fused_add_rms_norm", "fused_moe", "gelu_and_mul", "layer_norm",
    "linear", "linear_w4a16", "linear_w8a8", "matmul", "paged_attention", "reshape_and_cache",
    "rms_norm", "rotary_embedding", "sample", "silu_and_mul", "softmax", "topk_softmax",
}  # fmt: skip


def test_features_lists_the_optional_parts_of_the_library():
    assert opmux.features() == ["policy_files", "signatures"]


class TestList:
    def test_has_the_standard_operators(self, runtime):
        found = {info.name: info for info in runtime.list()}
        assert set(found) == STANDARD
        assert all(info.summary and info.schema.startswith(name) for name, info in found.items())

    @pytest.mark.parametrize("op", sorted(STANDARD))
    def test_each_has_a_reference(self, op):
        info = next(info for info in opmux.list_operators() if info.name == op)
        reference = next(i for i in info.implementations if i.id == f"{op}/reference.scalar")
        assert reference.available and reference.kind == "reference" and reference.priority == 50
        assert reference.backend == "reference" and reference.vendor == ""

    def test_calls_are_counted(self, runtime):
        with opmux.expect("rms_norm/reference.*", runtime=runtime):
            with opmux.scope(require=["reference"], runtime=runtime):
                runtime.op("rms_norm")(X, W)
                runtime.op("rms_norm")(X, W)
        info = next(info for info in runtime.list() if info.name == "rms_norm")
        counts = {i.id: i.calls for i in info.implementations}
        assert counts["rms_norm/reference.scalar"] == 2

    def test_without_backends(self):
        made = opmux.create_runtime(environment=[], backends=False)
        for info in made.list():
            assert [i.id for i in info.implementations] == [f"{info.name}/reference.scalar"]
        with opmux.expect("rms_norm/reference.scalar", runtime=made):
            made.op("rms_norm")(X, W)

    def test_backends_can_be_switched_off(self, runtime):
        runtime.enable_backend("simd", False)
        with opmux.expect("rms_norm/reference.*", runtime=runtime):
            runtime.op("rms_norm")(X, W)
        runtime.enable_backend("simd")
        with opmux.expect("rms_norm/simd.*", runtime=runtime):
            runtime.op("rms_norm")(X, W)
        with pytest.raises(opmux.Error):
            runtime.enable_backend("nonesuch")


class TestOps:
    def test_names(self):
        assert set(dir(opmux.ops)) >= STANDARD
        assert "operators" in repr(opmux.ops)
        assert opmux.ops.rms_norm is opmux.ops.rms_norm
        with pytest.raises(AttributeError):
            opmux.ops.__wrapped__

    def test_signatures(self):
        op = opmux.op("rms_norm")
        expected = "rms_norm(x, weight=None, eps=1e-6, round_before_weight=False, *, out=None)"
        assert op.signature.replace("1e-06", "1e-6") == expected
        assert op.schema.startswith("rms_norm(out Tensor y") and op.name == "rms_norm"
        assert "rms_norm(x, weight" in repr(op)
        assert "Tensor? weight[H]" in op.function.__doc__

    def test_arguments(self):
        found = {a.name: a for a in opmux._core.arguments(opmux.op("rotary_embedding"))}
        assert found["q"].updated and not found["q"].output and found["k"].optional
        assert found["style"].type == "enum" and found["style"].words == ["neox", "gptj"]
        assert found["cos_sin"].dims == ["P", "R"] and "positions" in repr(found["positions"])
        assert {a.name for a in opmux._core.arguments(opmux.op("linear")) if a.constant} == {
            "weight"
        }

    def test_an_operator_is_called_like_its_function(self):
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.op("rms_norm")(X, W).shape == X.shape


class TestStats:
    def test_counts(self, runtime):
        runtime.define("pick(out Tensor y[N], Tensor x[N])")

        def implement(name, function, **options):
            opmux.implementation("pick", name, runtime=runtime, **options)(function)

        def declines(x, *, out):
            raise opmux.Declined

        def fails(x, *, out):
            raise ValueError

        implement("own.body", lambda x, *, out: None, kind="reference")
        implement("fails.v1", fails, priority=200)
        implement("declines.v1", declines, priority=300)
        with opmux.expect("pick/own.body", runtime=runtime):
            runtime.op("pick")(W)
        found = {s.implementation: s for s in runtime.stats()}
        assert found["pick/declines.v1"].declined == 1 and found["pick/fails.v1"].failed == 1
        assert found["pick/own.body"].calls == 1 and found["pick/own.body"].stood_in == 1
        assert "calls=1" in repr(found["pick/own.body"])

    def test_counts_decisions_that_are_not_cached(self, runtime):
        runtime.define("size(out Tensor y[N], Tensor x[N])")

        @opmux.implementation("size", "mine.v1", runtime=runtime)
        def mine(x, *, out):
            out[:] = x

        @mine.verifier
        def check(x):
            return x.shape[0] > 0

        op, table = runtime.op("size"), 4096  # the number of classes that are cached
        data = np.zeros(table + 3, dtype="f4")
        for n in range(1, table + 4):
            op(data[:n])
        (found,) = (s for s in runtime.stats() if s.implementation == "size/mine.v1")
        assert found.calls == table + 3 and found.decided_each_time == 3

    def test_of_the_module(self):
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(X, W)
        assert any(s.calls for s in opmux.stats() if s.implementation.startswith("rms_norm/simd"))


class TestSettings:
    def test_say_where_they_come_from(self):
        made = opmux.create_runtime(environment=[("OPMUX_PREFER", "reference")])
        found = {s.key: s for s in made.settings()}
        assert any("reference" in s.value and "OPMUX_PREFER" in s.origin for s in found.values())
        with opmux.expect("rms_norm/reference.*", runtime=made):
            made.op("rms_norm")(X, W)

    def test_of_the_module(self):
        assert all(s.key and s.origin for s in opmux.settings()) and opmux.settings()
        assert "from" in repr(opmux.settings()[0])


class TestReaders:
    def test_types_that_were_met(self):
        class Own:
            def __dlpack__(self, **kwargs):
                return X.__dlpack__(**kwargs)

        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(Own(), out=X.copy())
            opmux.ops.rms_norm(X)
        with pytest.raises(opmux.InvalidArgument):
            opmux.ops.rms_norm(3)
        found = {kind: (path, detail) for kind, path, detail in opmux.readers()}
        assert found["numpy.ndarray"] == ("protocol", "__dlpack__")
        assert found["test_information.Own"] == ("protocol", "__dlpack__")
        assert found["builtins.int"][0] == "none" if "builtins.int" in found else True


class TestLogging:
    def test_events_go_to_the_logger(self, runtime, caplog):
        runtime.define("pick(out Tensor y[N], Tensor x[N])")

        @opmux.implementation("pick", "own.body", kind="reference", runtime=runtime)
        def body(x, *, out):
            pass

        @opmux.implementation("pick", "fails.v1", priority=200, runtime=runtime)
        def fails(x, *, out):
            raise ValueError("for the log")

        with caplog.at_level(logging.DEBUG, "opmux"):
            with opmux.expect("pick/own.body", runtime=runtime):
                runtime.op("pick")(W)
        record = next(r for r in caplog.records if "for the log" in r.getMessage())
        assert record.name == "opmux" and record.levelno >= logging.WARNING
        assert record.opmux_code == "call.fell_back" and record.opmux_op == "pick"
        assert record.opmux_impl == "pick/fails.v1"

    def test_a_sink_of_one_s_own(self):
        events = []
        made = opmux.create_runtime(environment=[], sink=lambda *event: events.append(event))
        made.define("pick(out Tensor y[N], Tensor x[N])")
        opmux.implementation("pick", "own.body", kind="reference", runtime=made)(lambda x: x)

        @opmux.implementation("pick", "fails.v1", priority=200, runtime=made)
        def fails(x, *, out):
            raise ValueError("for the sink")

        with opmux.expect("pick/own.body", runtime=made):
            made.op("pick")(W)
        assert any("for the sink" in text for *_, text in events)

    def test_a_sink_that_raises_hurts_nobody(self):
        def sink(*event):
            raise RuntimeError

        made = opmux.create_runtime(environment=[], sink=sink)
        made.define("pick(out Tensor y[N], Tensor x[N])")
        opmux.implementation("pick", "own.body", kind="reference", runtime=made)(lambda x: x)

        @opmux.implementation("pick", "fails.v1", priority=200, runtime=made)
        def fails(x, *, out):
            raise ValueError

        with opmux.expect("pick/own.body", runtime=made):
            made.op("pick")(W)
