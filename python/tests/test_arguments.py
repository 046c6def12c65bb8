"""Accepted and refused arguments: every error names the argument and the problem."""

import gc
import re
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opmux

torch = pytest.importorskip("torch")

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")
quick = settings(max_examples=15, deadline=None, database=None)


def refused(message, *args, op="rms_norm", reason=None, error=opmux.InvalidArgument, **kwargs):
    with opmux.report() as calls, pytest.raises(error, match=message) as raised:
        getattr(opmux.ops, op)(*args, **kwargs)
    assert [one for one in calls.implementations() if one] == []  # nothing ran
    if reason:
        assert raised.value.reason == reason
    return raised.value


class TestNamesAndCounts:
    def test_too_many(self):
        error = refused("takes 4 positional arguments, but 5 were passed", X, W, 1e-6, False, 1)
        assert isinstance(error, TypeError) and isinstance(error, ValueError)
        assert error.reason == "python.arguments" and error.code == "invalid_argument"

    def test_an_unknown_keyword_shows_the_signature(self):
        refused(r"no argument 'wieght': rms_norm\(x, weight=None", X, wieght=W)

    def test_an_output_is_not_a_keyword_of_its_own(self):
        refused("no argument 'y'", X, y=X.copy())

    def test_given_twice(self):
        refused("got 'weight' twice", X, W, weight=W)

    def test_a_keyword_that_is_no_text(self):
        with pytest.raises(UnicodeEncodeError):
            opmux.ops.rms_norm(X, **{"\ud800": 1})

    @pytest.mark.parametrize("args", [(), (None,), (None, W)], ids=len)
    def test_a_missing_input(self, args):
        refused(r"'x' is missing: rms_norm\(x,", *args, reason="schema.argument_missing")

    def test_a_missing_input_with_an_output(self):
        refused("'Tensor x.*' is missing", out=X.copy(), reason="schema.argument_missing")

    def test_none_for_an_optional_one_is_its_absence(self):
        with opmux.expect("rms_norm/simd.*"):
            y = opmux.ops.rms_norm(X, None, None, None)
        np.testing.assert_allclose(y, X, rtol=1e-5)

    @given(st.text(min_size=1).filter(str.isprintable))
    @quick
    def test_any_unknown_keyword(self, word):
        if word not in ("x", "weight", "eps", "round_before_weight", "out"):
            refused(re.escape(f"rms_norm has no argument '{word}'"), X, **{word: 1})

    @given(st.integers(5, 40))
    @quick
    def test_any_number_of_positionals(self, count):
        refused(f"but {count} were passed", *([X] * count))


_not_tensors = st.one_of(
    st.integers(), st.floats(), st.text(), st.binary(), st.booleans(), st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()), st.tuples(st.integers()), st.just(object()),
    st.just(print), st.just(...), st.complex_numbers(),
)  # fmt: skip


class TestTypes:
    @given(_not_tensors, st.sampled_from(["x", "weight"]))
    @quick
    def test_no_tensor(self, value, name):
        given_ = {"x": X, "weight": W, name: value}
        kind = re.escape(f"'{name}' must be a tensor, not '{type(value).__name__}'")
        refused(kind, **given_, reason="python.argument_type")

    @given(_not_tensors.filter(lambda v: not isinstance(v, tuple)))
    @quick
    def test_no_tensor_for_out(self, value):
        refused(f"'y' must be a tensor, not '{type(value).__name__}'", X, out=value)

    @given(st.one_of(st.text(), st.binary(), st.lists(st.floats()), st.just(object()), st.just(X)))
    @quick
    def test_no_number(self, value):
        refused("'eps' must be a float, not '.*'", X, W, value)

    @given(st.one_of(st.floats(), st.text(), st.binary(), st.just(object())))
    @quick
    def test_no_integer(self, value):
        q = np.ones((1, 2, 2, 4), "f4")
        kind = type(value).__name__
        refused(f"'window' must be an int, not '{kind}'", q, q, q, window=value, op="attention")

    @given(st.integers(2**63, 2**70) | st.integers(-(2**70), -(2**63) - 1))
    @quick
    def test_integers_too_large(self, value):
        q = np.ones((1, 2, 2, 4), "f4")
        refused("'window' must be an int of at most 64 bits", q, q, q, window=value, op="attention")

    @given(st.one_of(st.integers().filter(lambda v: v not in (0, 1)), st.text(), st.floats()))
    @quick
    def test_no_truth(self, value):
        refused("'round_before_weight' must be a bool", X, W, 1e-6, value)

    @pytest.mark.parametrize("value", [True, False, 1, 0, np.bool_(True), np.True_, np.int64(1)])
    def test_truths(self, value):
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(X, W, 1e-6, value)

    @pytest.mark.parametrize(
        "value", [1, True, np.float32(0.5), np.float64(0.5), torch.tensor(0.5)]
    )
    def test_numbers(self, value):
        with opmux.expect("rms_norm/simd.*"):
            y = opmux.ops.rms_norm(X, W, value)
        np.testing.assert_allclose(y, X / np.sqrt(1 + float(value)), rtol=1e-5)

    @given(st.text().filter(lambda w: w not in ("none", "tanh") and w.isprintable()))
    @quick
    def test_words(self, word):
        message = re.escape(f"'approximate' is one of none, tanh, not '{word}'")
        refused(message, X, word, op="gelu_and_mul", out=np.ones((4, 4), "f4"))

    @pytest.mark.parametrize("value", [1, 1.5, b"none", ["none"]])
    def test_no_word(self, value):
        refused("'approximate' must be a str", X, value, op="gelu_and_mul")


class TestShapes:
    @given(st.integers(0, 64).filter(lambda n: n != 8))
    @quick
    def test_dimensions_name_both_numbers(self, size):
        message = f"H is 8 in x but {size} in weight"
        refused(message, X, np.ones(size, "f4"), reason="schema.dim_mismatch")

    @given(st.lists(st.integers(1, 6), min_size=1, max_size=4).filter(lambda s: s != [4, 8]))
    @quick
    def test_out_of_the_wrong_shape(self, shape):
        refused(r"in y|'y'|H is|rows|\.\.\.", X, W, out=np.ones(shape, "f4"))

    @given(st.integers(0, 6).filter(lambda n: n != 1))
    @quick
    def test_ranks(self, rank):
        error = refused("'?weight'?", X, np.ones((8,) * min(rank, 1) + (1,) * (rank - 1), "f4"))
        assert str(rank) in str(error)

    @pytest.mark.parametrize("rank", [9, 20, 32])
    def test_more_than_eight_dimensions(self, rank):
        refused("'x' has more than 8 dimensions", np.ones((1,) * rank, "f4"))

    @given(st.integers(1, 12), st.integers(1, 12))
    @quick
    def test_where_names_the_numbers(self, wide, narrow):
        if wide == 2 * narrow:
            return
        message = rf"H2 == 2 \* H does not hold: H2 is {wide}, H is {narrow}"
        refused(message, np.ones((2, wide), "f4"), out=np.ones((2, narrow), "f4"),
                op="silu_and_mul", reason="schema.where")  # fmt: skip

    def test_scalars_in_where(self):
        q = np.ones((1, 2, 2, 4), "f4")
        refused("window is -1", q, q, q, window=-1, op="attention", reason="schema.where")


class TestDtypes:
    @pytest.mark.parametrize("dtype", ["f8", "i4", "i8", "i2", "i1", "u1", "?", "c8"])
    def test_nobody_takes_it(self, dtype):
        x = np.ones((4, 8), dtype)
        refused("no implementation of rms_norm is left", x, out=X.copy(), error=opmux.NoCandidate,
                reason="dispatch.no_candidate")  # fmt: skip

    @pytest.mark.parametrize("dtype", ["O", "M8[s]", "S3", "U3", ">f4"])
    def test_nobody_can_read_it(self, dtype):
        error = refused("'x' cannot be read", np.zeros((4, 8), dtype), reason="python.not_readable")
        assert isinstance(error.__cause__, (BufferError, TypeError, RuntimeError))

    def test_numpy_has_no_bf16(self):
        table, ids = torch.ones(3, 4, dtype=torch.bfloat16), np.array([0, 1])
        with opmux.expect("embedding/simd.*"):
            assert opmux.ops.embedding(table, ids).dtype == torch.bfloat16

    @pytest.mark.parametrize("kind", ["logits", "embedding"])
    def test_integer_outputs_are_made_of_integers(self, kind):
        if kind == "logits":
            with opmux.expect("sample/simd.*"):
                y = opmux.ops.sample(torch.tensor([[0.0, 9.0]]), torch.zeros(1))
            assert y.dtype in (torch.int32, torch.int64) and y.tolist() == [1]
        else:
            refused("float|dtype", np.ones((3, 4), "f4"), np.ones(2, "f4"), op="embedding",
                    error=opmux.Error)  # fmt: skip


class TestOutputs:
    def test_out_is_returned(self):
        out = np.empty_like(X)
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(X, out=out) is out

    def test_a_tuple_of_one(self):
        out = np.empty_like(X)
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(X, out=(out,)) is out

    @pytest.mark.parametrize("count", [0, 2, 3])
    def test_a_tuple_of_another_number(self, count):
        refused("writes 1 tensors: out= must be a tuple", X, out=(X.copy(),) * count)

    def test_two_outputs_want_a_tuple(self):
        refused("writes 2 tensors", X, out=X.copy(), op="topk_softmax")

    def test_one_of_two_outputs_cannot_be_inferred(self):
        refused("'weights': the inputs do not determine dimension K", X, op="topk_softmax",
                reason="schema.not_inferable")  # fmt: skip

    def test_one_that_is_given_tells_of_the_other(self):
        x = np.random.default_rng(0).standard_normal((4, 8)).astype("f4")
        weights, ids = np.empty((4, 2), "f4"), np.empty((4, 2), "i8")
        with opmux.expect("topk_softmax/*"):
            for out in ((weights, None), (None, ids)):
                made = opmux.ops.topk_softmax(x, out=out)
                assert made[0].dtype == "f4" and made[1].dtype == "i8"
                assert made[0].shape == made[1].shape == weights.shape
                np.testing.assert_array_equal(made[1], np.argsort(-x, axis=1)[:, :2])

    def test_operators_that_update_take_none(self):
        refused("takes no out=", X, X.copy(), out=X.copy(), op="fused_add_rms_norm")

    def test_none_is_made(self):
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(X, out=None).shape == X.shape

    def test_read_only(self):
        out = np.empty_like(X)
        out.flags.writeable = False
        refused("'y' is read-only", X, out=out, reason="python.not_writable")

    def test_read_only_once_is_not_for_ever(self):
        out = np.empty_like(X)
        out.flags.writeable = False
        refused("'y' is read-only", X, out=out)
        x, y = torch.ones(4, 8), torch.empty(4, 8)
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(x, out=y) is y

    @pytest.mark.parametrize("library", ["numpy", "torch"])
    def test_a_stride_of_zero(self, library):
        if library == "numpy":
            out = np.lib.stride_tricks.as_strided(np.ones(8, "f4"), (4, 8), (0, 4), writeable=True)
        else:
            out = torch.ones(8).expand(4, 8)
        refused("'y' has a stride of 0", X, out=out)

    def test_a_stride_of_zero_for_an_argument_that_is_updated(self):
        x = torch.ones(8).expand(4, 8)
        refused("'x' has a stride of 0", x, torch.ones(4, 8), op="fused_add_rms_norm")

    def test_inputs_may_have_a_stride_of_zero(self):
        with opmux.expect("rms_norm/*"):
            y = opmux.ops.rms_norm(torch.full((8,), 3.0).expand(4, 8))
        torch.testing.assert_close(y, torch.ones(4, 8))

    def test_a_constant_is_not_written(self):
        refused("'y' is a constant", X, out=opmux.constant(X.copy()))

    def test_read_only_inputs_are_fine(self):
        x = X.copy()
        x.flags.writeable = False
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(x)


class Lender:
    """A tensor type that supports only `__dlpack__`."""

    def __init__(self, array, keywords=True):
        self.array, self.keywords, self.asked = array, keywords, 0

    def __dlpack__(self, **kwargs):
        self.asked += 1
        if kwargs and not self.keywords:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**kwargs)


class TestProtocol:
    @pytest.mark.parametrize("keywords", [True, False])
    def test_objects_that_lend(self, keywords):
        x, out = Lender(X * 2, keywords), np.empty_like(X)
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(x, out=out) is out
        np.testing.assert_allclose(out, X, rtol=1e-5)
        assert x.asked == (1 if keywords else 2)

    def test_the_output_too(self):
        out = Lender(np.zeros_like(X))
        with opmux.expect("rms_norm/simd.*"):
            assert opmux.ops.rms_norm(X, out=out) is out
        np.testing.assert_allclose(out.array, X, rtol=1e-5)

    def test_outputs_of_unknown_libraries_are_to_be_given(self):
        refused("opmux cannot allocate tensors of test_arguments: pass out=", Lender(X),
                error=opmux.Unsupported)  # fmt: skip

    def test_what_was_lent_is_given_back(self):
        x = np.ones((4, 8), "f4")
        gone = weakref.ref(x)
        with opmux.expect("rms_norm/simd.*"):
            opmux.ops.rms_norm(x)
        del x
        gc.collect()
        assert gone() is None

    def test_what_was_lent_is_given_back_after_a_refusal(self):
        out = np.empty_like(X)
        out.flags.writeable = False
        gone = weakref.ref(out)
        with pytest.raises(opmux.InvalidArgument):
            opmux.ops.rms_norm(X, out=out)
        del out
        gc.collect()
        assert gone() is None

    @pytest.mark.parametrize(
        "answer", [None, 1, "capsule", ValueError("no"), BufferError("no"), RuntimeError("no")]
    )
    def test_lenders_that_do_not(self, answer):
        class Bad:
            def __dlpack__(self, **kwargs):
                if isinstance(answer, Exception):
                    raise answer
                return answer

        error = refused("'x' cannot be read", Bad(), out=X.copy(), reason="python.not_readable")
        assert error.__cause__ is not None

    def test_an_interrupt_is_not_an_error_of_the_argument(self):
        class Stopped:
            def __dlpack__(self, **kwargs):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            opmux.ops.rms_norm(Stopped(), out=X.copy())

    def test_a_capsule_is_taken_once(self):
        class Used:
            def __dlpack__(self, **kwargs):
                capsule = X.__dlpack__()
                np.from_dlpack(type("Once", (), {
                    "__dlpack__": lambda self, **k: capsule,
                    "__dlpack_device__": lambda self: (1, 0)})())  # fmt: skip
                return capsule

        refused("'x' cannot be read", Used(), out=X.copy())

    def test_negative_strides(self):
        x = np.arange(32, dtype="f4").reshape(4, 8)[::-1, ::-1]
        with opmux.expect("rms_norm/*"):
            y = opmux.ops.rms_norm(x)
        np.testing.assert_allclose(y, x / np.sqrt((x * x).mean(-1, keepdims=True)), rtol=1e-5)

    def test_libraries_mix(self):
        with opmux.expect("rms_norm/simd.*"):
            y = opmux.ops.rms_norm(torch.ones(4, 8), W, out=np.empty_like(X))
        np.testing.assert_allclose(y, X, rtol=1e-5)

    def test_the_output_is_of_the_first_input_s_library(self):
        with opmux.expect("rms_norm/simd.*"):
            assert isinstance(opmux.ops.rms_norm(torch.ones(4, 8), W), torch.Tensor)
            assert isinstance(opmux.ops.rms_norm(X, torch.ones(8)), np.ndarray)


class TestLists:
    def test_tensors_and_integers(self, runtime):
        runtime.define("join(out Tensor y[N], Tensor[] parts, int[] order)")
        seen = []

        @opmux.implementation("join", "mine.v1", runtime=runtime)
        def join(parts, order, *, out):
            seen.append((list(parts), list(order)))
            np.concatenate([parts[i] for i in order], out=out)

        out = np.empty(4, "f4")
        with opmux.expect("join/mine.v1", runtime=runtime):
            runtime.op("join")([X[0, :1], X[0, :3] * 2], [1, 0], out=out)
        assert out.tolist() == [2, 2, 2, 1] and len(seen) == 1

    @pytest.mark.parametrize("parts", [[1], [X, None], 3, [object()], "ab"], ids=str)
    def test_no_tensors(self, runtime, parts):
        runtime.define("join(out Tensor y[N], Tensor[] parts, int[] order)")
        with pytest.raises(opmux.InvalidArgument, match="'parts' must be a"):
            runtime.op("join")(parts, [0], out=np.empty(4, "f4"))

    @pytest.mark.parametrize("order", [["a"], [1.5], 3, [None]], ids=str)
    def test_no_integers(self, runtime, order):
        runtime.define("join(out Tensor y[N], Tensor[] parts, int[] order)")
        with pytest.raises(opmux.InvalidArgument, match="'order' must be"):
            runtime.op("join")([X], order, out=np.empty(4, "f4"))
