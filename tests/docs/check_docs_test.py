"""Tests of the checks on documents."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_links  # noqa: E402
import check_snippets  # noqa: E402
import gen_docs  # noqa: E402


class Snippets(unittest.TestCase):
    def test_joins_blocks_of_one_name_between_hidden_lines(self):
        page = ("<!-- before a\nfirst\n-->\n```cpp run=a\nsecond\n```\n"
                "```cpp run=a\nthird\n```\n<!-- after a\nfourth\n-->\n```text of=a\nout\n```\n")
        snippet = check_snippets.parse(page)["a"]
        self.assertEqual(snippet.source(), "first\nsecond\nthird\nfourth\n")
        self.assertEqual(snippet.expected, ["out"])

    def test_refuses_a_block_without_a_name(self):
        with self.assertRaisesRegex(check_snippets.Problem, "line 2"):
            check_snippets.parse("text\n```cpp\nint x;\n```\n")

    def test_refuses_output_of_nothing(self):
        with self.assertRaisesRegex(check_snippets.Problem, "output of b"):
            check_snippets.parse("```text of=b\nx\n```\n")

    def test_refuses_a_block_that_does_not_end(self):
        with self.assertRaisesRegex(check_snippets.Problem, "closes"):
            check_snippets.parse("```cpp run=a\nint x;\n")

    def test_notices_another_output(self):
        snippet = check_snippets.Snippet("run", "a", "cpp")
        snippet.expected = ["one"]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program")
            program.write_text("#!/bin/sh\necho two\n")
            program.chmod(0o700)
            with self.assertRaisesRegex(check_snippets.Problem, "two\ninstead of\none"):
                check_snippets.check_output(snippet, program, pathlib.Path(folder))

    def test_notices_a_program_that_fails(self):
        snippet = check_snippets.Snippet("run", "a", "cpp")
        with self.assertRaisesRegex(check_snippets.Problem, "exited with 1"):
            check_snippets.check_output(snippet, pathlib.Path("/bin/false"), pathlib.Path("/"))

    def test_notices_a_difference_from_the_file(self):
        snippet = check_snippets.Snippet("run", "a", "cpp")
        snippet.file, snippet.body = "LICENSE", ["other"]
        with self.assertRaisesRegex(check_snippets.Problem, "differs"):
            check_snippets.check_file(snippet)


class Generated(unittest.TestCase):
    def test_reads_every_form_of_argument(self):
        rows = [gen_docs.Argument(text).row() for text in (
            "out Tensor y[..., H]", "inout Tensor? k[..., HKV, D]", "enum{none, tanh} a = none",
            "const Tensor w[N, K]", "float eps = 1e-6")]
        self.assertEqual(rows[0], "| `y` | out | `Tensor` | `[..., H]` | required |")
        self.assertEqual(rows[1], "| `k` | inout | `Tensor` | `[..., HKV, D]` | absent |")
        self.assertEqual(rows[2], "| `a` | in | `enum{none, tanh}` |  | `none` |")
        self.assertEqual(rows[3], "| `w` | in | `const Tensor` | `[N, K]` | required |")
        self.assertEqual(rows[4], "| `eps` | in | `float` |  | `1e-6` |")

    def test_replaces_only_what_stands_between_the_marks(self):
        text = "a\n<!-- generated arguments softmax -->\nold\n<!-- end -->\nb\n"
        made = gen_docs.regenerated(ROOT, text)
        self.assertNotIn("old", made)
        self.assertIn("| `scale` | in | `float` |  | `1` |", made)
        self.assertTrue(made.startswith("a\n") and made.endswith("\nb\n"))
        self.assertEqual(gen_docs.regenerated(ROOT, made), made)

    def test_puts_outputs_last_in_python_and_defaults_only_where_they_may_stand(self):
        def first(op):
            return "".join(line.strip() + " " for line in gen_docs.python_signature(ROOT, op)[1:-3])
        self.assertEqual(first("softmax"), "opmux.ops.softmax(x, scale=1, *, out=None) ")
        self.assertEqual(first("rotary_embedding"),
                         'opmux.ops.rotary_embedding(q, k, positions, cos_sin, style="neox") ')
        self.assertEqual(first("topk_softmax"),
                         "opmux.ops.topk_softmax(logits, renormalize=False, *, out) ")

    def test_solves_a_condition_for_the_shape_of_an_output(self):
        self.assertTrue(gen_docs.Schema(ROOT, "silu_and_mul").inferable())
        self.assertFalse(gen_docs.Schema(ROOT, "topk_softmax").inferable())

    def test_every_operator_has_a_page_with_its_meaning_and_its_implementations(self):
        for op in gen_docs.operators(ROOT):
            page = gen_docs.operator_page(ROOT, op)
            self.assertIn(f"| `{op}/reference.scalar` | reference |  | 50 |", page)
            self.assertIn(gen_docs.sections(ROOT)[op], page)
            self.assertNotIn("<!--", page)

    def test_names_what_a_page_leaves_out_and_invents(self):
        self.assertEqual(gen_docs.differences("word", "page", {"a"}, {"b"}),
                         ["page: lacks the word b", "page: a is not a word in the sources"])


class Links(unittest.TestCase):
    def test_names_a_missing_file_and_a_missing_heading(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "a.md").write_text("# Top line\n[x](b.md) [y](#top-line) [z](#other)\n")
            problems = list(check_links.problems_of(root / "a.md", root))
        self.assertEqual(problems, ["a.md: b.md does not exist", "a.md: a.md has no heading for #other"])


if __name__ == "__main__":
    unittest.main()
