"""Explanations of decisions: as data, text, coloured text, HTML and JSON."""

import json
import os
import pathlib
import pty
import subprocess
import sys

import numpy as np
import pytest

import opmux

X, W = np.ones((4, 8), "f4"), np.ones(8, "f4")
_SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "docs/schemas/explain.json"


class TestData:
    def test_chosen_is_what_runs(self):
        explained = opmux.explain("rms_norm", X, W)
        with opmux.expect(explained.chosen):
            opmux.ops.rms_norm(X, W)
        assert explained.op == "rms_norm" and explained.device == "cpu:0"
        assert explained.generation > 0 and not explained.strict
        assert "x=f32[4,8]" in explained.arguments

    def test_candidates(self):
        with opmux.deny("rms_norm/simd.*"):
            explained = opmux.explain("rms_norm", X, W)
        by_id = {c.id: c for c in explained.candidates}
        assert explained.chosen == "rms_norm/reference.scalar"
        refused = by_id["rms_norm/simd.avx2"]
        assert (refused.verdict, refused.code) == ("refused", "policy.denied")
        assert not refused.accepted and "scope" in refused.reason
        assert by_id[explained.chosen].accepted and by_id[explained.chosen].verdict == "chosen"
        assert "rms_norm/simd.avx2 refused" in repr(refused)

    def test_what_it_depends_on(self):
        explained = opmux.explain("rms_norm", X, W)
        assert "dtype(x)" in explained.depends_on

    def test_objects_and_keywords(self, runtime):
        explained = opmux.explain(runtime.op("rms_norm"), x=X, weight=W, eps=0.5)
        assert "eps=0.5" in explained.arguments

    def test_bad_arguments_are_explained(self):
        explained = opmux.explain("rms_norm", X, np.ones(7, "f4"))
        assert explained.chosen == "" and "H is 8 in x but 7 in weight" in explained.note

    @pytest.mark.parametrize("args", [(3,), (X, W, "much"), (X, W, 1.0, True, 5)], ids=len)
    def test_what_cannot_be_read_is_refused(self, args):
        with pytest.raises(opmux.InvalidArgument):
            opmux.explain("rms_norm", *args)

    def test_unknown_operators(self):
        with pytest.raises(opmux.NotFound, match="rms_norm"):
            opmux.explain("rms_nrm", X)

    def test_runs_nothing(self):
        def count():
            return sum(s.calls for s in opmux.stats())

        before = count()
        opmux.explain("rms_norm", X, W)
        assert count() == before


class TestText:
    def test_is_the_table(self):
        text = str(opmux.explain("rms_norm", X, W))
        assert "rms_norm/simd" in text and "chosen" in text and "depends on:" in text
        assert "\x1b" not in text and repr(opmux.explain("rms_norm", X, W)) == text

    def run_in_terminal(self, **environment):
        """Prints an explanation in a terminal and returns the output."""
        script = (
            "import numpy, opmux\n"
            "with opmux.deny('rms_norm/simd.sse4'):\n"
            "    print(opmux.explain('rms_norm', numpy.ones((4, 8), 'f4')))\n"
        )
        ours, theirs = pty.openpty()
        variables = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | environment
        with subprocess.Popen([sys.executable, "-c", script], stdout=theirs, env=variables) as run:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                shown += part
        os.close(ours)
        assert run.returncode == 0
        return shown.decode()

    def test_has_colours_in_a_terminal(self):
        shown = self.run_in_terminal()
        refused = next(line for line in shown.splitlines() if "sse4" in line)
        chosen = next(line for line in shown.splitlines() if "chosen" in line)
        assert "\x1b[31m" in refused and "\x1b[32m" in chosen

    def test_has_none_if_they_are_not_wanted(self):
        assert "\x1b[3" not in self.run_in_terminal(NO_COLOR="1")


class TestHtml:
    def test_a_row_for_each_candidate(self):
        explained = opmux.explain("rms_norm", X, W)
        shown = explained._repr_html_()
        assert shown.count("<tr") == len(explained.candidates)
        assert all(c.id in shown for c in explained.candidates)
        assert shown.startswith("<div>") and shown.endswith("</div>")

    def test_is_escaped(self):
        with opmux.scope(
            rules=[opmux.rule(op="rms_norm", deny=["rms_norm/simd.*"], owner="<b>&</b>")]
        ):
            shown = opmux.explain("rms_norm", X, W)._repr_html_()
        assert "<b>&</b>" not in shown and "&lt;b&gt;&amp;" in shown


class TestJson:
    @pytest.mark.parametrize(
        "args",
        [("rms_norm", X, W), ("rms_norm", X, np.ones(7, "f4")), ("softmax", X),
         ("attention", *[np.ones((1, 2, 2, 4), "f4")] * 3)],
        ids=str,
    )  # fmt: skip
    def test_is_as_documented(self, args):
        jsonschema = pytest.importorskip("jsonschema")
        explained = opmux.explain(*args)
        found = json.loads(explained.to_json())
        jsonschema.validate(found, json.loads(_SCHEMA.read_text()))
        assert found["chosen"] == explained.chosen and found["op"] == args[0]

    def test_refusals_too(self):
        jsonschema = pytest.importorskip("jsonschema")
        with opmux.require("reference"):
            found = json.loads(opmux.explain("rms_norm", X, W).to_json())
        jsonschema.validate(found, json.loads(_SCHEMA.read_text()))
        assert {c["verdict"] for c in found["candidates"]} >= {"refused"}
