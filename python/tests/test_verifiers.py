"""Python verifiers: the facts that they see, the meaning of their results, and capabilities."""

import threading

import numpy as np
import pytest
from python_world import X, call, implement

import opmux


class TestVerifiers:
    def refusal(self, world, *args):
        explained = opmux.explain(world.op("twice"), *(args or (X,)))
        return next(c for c in explained.candidates if c.id == "twice/mine.v1")

    @pytest.mark.parametrize("answer", [True, (True, None)], ids=str)
    def test_accept(self, world, answer):
        mine = implement(world)(lambda x, factor, mode: x)
        mine.verifier(lambda x, factor, mode: answer)
        call(world)

    @pytest.mark.parametrize("answer", ["N is odd", (False, "N is odd")], ids=str)
    def test_refuse(self, world, answer):
        mine = implement(world)(lambda x, factor, mode: x)
        mine.verifier(lambda x, factor, mode: answer)
        call(world, expect="twice/own.body")
        found = self.refusal(world)
        assert (found.verdict, found.code) == ("refused", "verify.refused")
        assert "N is odd" in found.reason

    @pytest.mark.parametrize(
        "answer", [None, False, 0, 1, 1.5, (), (False, None), (True, "why"), ["x"]], ids=str
    )
    def test_broken_by_its_answer(self, world, answer):
        mine = implement(world)(lambda x, factor, mode: x)
        mine.verifier(lambda x, factor, mode: answer)
        call(world, expect="twice/own.body")
        assert self.refusal(world).code == "verify.broken"

    def test_broken_by_an_exception(self, world):
        mine = implement(world)(lambda x, factor, mode: x)

        @mine.verifier
        def check(x, factor, mode):
            raise LookupError("no such thing")

        call(world, expect="twice/own.body")
        found = self.refusal(world)
        assert found.code == "verify.broken" and "LookupError: no such thing" in found.reason

    def test_facts(self, runtime):
        seen = {}

        @opmux.implementation("rms_norm", "mine.v1", priority=900, runtime=runtime)
        def mine(x, weight, eps, round_before_weight):
            return x

        @mine.verifier
        def check(x, weight, eps, round_before_weight):
            seen.update(
                dtype=x.dtype, ndim=x.ndim, dim=x.dim(), device=x.device, rows=x.shape.rows,
                last=x.shape[-1], size=x.size(-1), contiguous=x.is_contiguous(),
                length=len(x.shape), weight=weight, eps=eps, round=round_before_weight,
            )  # fmt: skip
            return True

        with opmux.expect("rms_norm/mine.v1", runtime=runtime):
            runtime.op("rms_norm")(np.ones((2, 3, 8), "f4"), None, 0.25, True)
        assert seen == {
            "dtype": "f32", "ndim": 3, "dim": 3, "device": "cpu", "rows": 6, "last": 8, "size": 8,
            "contiguous": True, "length": 3, "weight": None, "eps": 0.25, "round": True,
        }  # fmt: skip

    def test_enum_facts_are_words(self, world):
        mine = implement(world)(lambda x, factor, mode: x)
        mine.verifier(lambda x, factor, mode: mode == "b" or f"mode is {mode}")
        call(world, X, 2.0, "b")
        call(world, X, 2.0, "a", expect="twice/own.body")

    @pytest.mark.parametrize("index", [3, -4, 99])
    def test_shapes_end(self, world, index):
        caught = []
        mine = implement(world)(lambda x, factor, mode: x)

        @mine.verifier
        def check(x, factor, mode):
            try:
                x.shape[index]
            except IndexError as error:
                caught.append(str(error))
            return True

        call(world)
        assert set(caught) == {"x has 1 dimensions"}

    def test_leading_dimensions_have_no_names(self, runtime):
        caught = []

        @opmux.implementation("rms_norm", "mine.v1", priority=900, runtime=runtime)
        def mine(x, weight, eps, round_before_weight):
            return x

        @mine.verifier
        def check(x, weight, eps, round_before_weight):
            try:
                x.shape[0]
            except LookupError as error:
                caught.append(str(error))
            return True

        runtime.op("rms_norm")(np.ones((2, 8), "f4"))
        assert "dimension 0 of x has no name in the schema" in caught[0]

    def test_each_class_of_arguments_is_asked_once(self, world):
        asked = []
        mine = implement(world)(lambda x, factor, mode: x)

        @mine.verifier
        def check(x, factor, mode):
            asked.append(x.shape[0])
            return x.shape[0] % 2 == 0 or "odd"

        for size in (4, 4, 5, 5, 4):
            call(world, X[:size], expect="twice/mine.v1" if size == 4 else "twice/own.body")
        # The first answer shows which facts the verifier reads; it is asked again with them.
        assert asked == [4, 4, 5]

    def test_a_verifier_that_reads_no_shape_is_asked_once_for_all_shapes(self, world):
        asked = []
        mine = implement(world)(lambda x, factor, mode: x)

        @mine.verifier
        def check(x, factor, mode):
            asked.append(x.dtype)
            return x.dtype == "f32" or "only f32"

        for size in range(1, 9):
            call(world, X[:size])
        assert asked == ["f32", "f32"]
        call(world, X.astype("f8"), expect="twice/own.body")
        assert asked == ["f32", "f32", "f64"]

    def test_a_fact_that_only_some_answers_depend_on_is_read_only_for_them(self, world):
        asked = []
        mine = implement(world)(lambda x, factor, mode: x)

        @mine.verifier
        def check(x, factor, mode):
            asked.append(x.dtype)
            return x.dtype == "f64" or x.shape[0] % 2 == 0 or "odd"

        call(world, X[:5].astype("f8"))
        call(world, X[:5], expect="twice/own.body")
        call(world, X[:4])
        call(world, X[:5].astype("f8"))
        assert asked.count("f32") == 3 and asked.count("f64") == 3

    def test_facts_end_with_the_verifier(self, world):
        kept = []
        mine = implement(world)(lambda x, factor, mode: x)
        mine.verifier(lambda x, factor, mode: kept.append(x) or True)
        call(world)
        with pytest.raises(ValueError, match="while the verifier runs"):
            kept[0].dtype

    def test_verifiers_and_small_calls_do_not_wait_for_each_other(self, world):
        """One thread decides without the GIL and acquires it for the verifier; another holds it."""
        mine = implement(world)(lambda x, factor, mode: x)
        mine.verifier(lambda x, factor, mode: x.shape[0] % 3 != 0 or "a multiple of 3")
        op, done = world.op("twice"), []

        def work(base):
            for i in range(60):
                op(np.zeros(base + i, "f4"))
            done.append(base)

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in (1, 20000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(done) == [1, 20000]


class TestCapabilities:
    @pytest.mark.parametrize(
        "caps,fits,refused",
        [
            ({"multiple_of": {"N": 4}}, X, X[:7]),
            ({"at_least": {"N": 8}}, X, X[:7]),
            ({"at_most": {"N": 7}}, X[:7], X),
            ({"contiguous": True}, X, X[::2]),
        ],
        ids=str,
    )
    def test_numbers(self, world, caps, fits, refused):
        implement(world, **caps)(lambda x, factor, mode: x)
        call(world, fits)
        call(world, refused, expect="twice/own.body")

    def test_dtypes(self, world):
        implement(world, dtypes=["f64"])(lambda x, factor, mode: x)
        call(world, X, expect="twice/own.body")
        call(world, X.astype("f8"))

    @pytest.mark.parametrize(
        "bad",
        [
            {"dtypes": ["f99"]},
            {"kind": "other"},
            {"multiple_of": {"Q": 4}},
            {"hints": [opmux.Hint("Q", priority=150)]},
            {"hints": [opmux.Hint("N", least=5, most=4, priority=150)]},
            {"hints": [opmux.Hint("N", priority=1001)]},
        ],
        ids=str,
    )
    def test_nonsense_is_refused(self, world, bad):
        with pytest.raises((opmux.Error, ValueError)):
            implement(world, **bad)(lambda x, factor, mode: x)
        call(world, expect="twice/own.body")


class TestHints:
    def test_a_range_ranks_and_does_not_refuse(self, world):
        few = opmux.Hint("N", most=4, priority=300)
        implement(world, "few.v1", hints=[few])(lambda x, factor, mode: x)
        implement(world)(lambda x, factor, mode: x)
        for _ in range(2):
            call(world, X[:4], expect="twice/few.v1")
            call(world, X[:5], expect="twice/few.v1")
        implement(world, "many.v1", hints=[opmux.Hint("N", least=5, priority=250)])(
            lambda x, factor, mode: x
        )
        for _ in range(2):
            call(world, X[:4], expect="twice/few.v1")
            call(world, X[:5], expect="twice/many.v1")
            call(world, X, expect="twice/many.v1")
        with opmux.scope(deny=["impl:twice/many.v1"], runtime=world):
            call(world, X, expect="twice/few.v1")

    def test_explain_and_list_show_them(self, world):
        few = opmux.Hint("N", most=4, priority=300)
        implement(world, hints=[few, opmux.Hint("N", least=6, priority=250)])(
            lambda x, factor, mode: x
        )
        shown = {n: opmux.explain(world.op("twice"), X[:n]).candidates[0] for n in (4, 5, 6)}
        assert [one.score for one in shown.values()] == [300, 200, 250]
        assert {one.priority for one in shown.values()} == {200}
        assert shown[5].hint is None and shown[6].hint.most is None
        assert (shown[4].hint.dim, shown[4].hint.least, shown[4].hint.most) == ("N", 0, 4)
        assert "hint 300 for N <= 4" in shown[4].reason
        (listed,) = (
            one
            for info in world.list()
            for one in info.implementations
            if one.id == "twice/mine.v1"
        )
        assert list(map(repr, listed.hints)) == ["<Hint 300 for N <= 4>", "<Hint 250 for N >= 6>"]

    def test_an_upper_limit_is_at_least_one(self):
        with pytest.raises(ValueError, match="at least 1"):
            opmux.Hint("N", most=0, priority=1)
