"""Mutants change only code, not comments or literals."""
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import mutations  # noqa: E402


def of_line(line):
    """All mutations of a line inside a function, by kind."""
    found = {}
    for kind, after in mutations.edits(line, mutations.blanked(line), ";"):
        found.setdefault(kind, []).append(after)
    return found


class Mutations(unittest.TestCase):
    def test_each_kind_changes_what_it_is_for(self):
        self.assertEqual(of_line("  if (a < b && c) {"), {
            "relation": ["  if (a <= b && c) {", "  if (a >= b && c) {"],
            "logic": ["  if (a < b || c) {"], "condition": ["  if (!(a < b && c)) {"]})
        self.assertEqual(of_line("  return size + 1;"), {
            "arithmetic": ["  return size - 1;"], "constant": ["  return size + 2;"],
            "return": ["  return {};"]})
        self.assertEqual(of_line("  return true;"), {"truth": ["  return false;"]})
        self.assertEqual(of_line("  plan.epoch = now;"), {"statement": ["  ;"]})
        self.assertEqual(of_line("  log.tell(text);"), {"statement": ["  ;"]})
        self.assertEqual(of_line("  if (Status s = f(); !s.ok()) return s;"), {
            "condition": ["  if (Status s = f(); !(!s.ok())) return s;"],
            "return": ["  if (Status s = f(); !s.ok()) return {};"]})

    def test_leaves_alone_what_is_no_decision(self):
        for line in ("  const Entry entry(a);", "  return nullptr;", "  // a < b", "  }",
                     '  "a == b",', "  std::vector<int> list;", "  p->next->last;",
                     "  std::array<char, 32> text;"):
            self.assertEqual(of_line(line), {}, line)

    def drawn(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src/schema").mkdir(parents=True)
            (root / "src/schema/a.hpp").write_text(text)
            found = mutations.mutants_of(root, "schema", [], random.Random(1))
        return sorted(mutant.line for mutant in found)

    def test_draws_from_bodies_of_functions_only(self):
        self.assertEqual(self.drawn("""#if A == 1
constexpr int kMost = 8;
static_assert(kMost == 8 &&
              kMost < 9);
struct S {
  int count = 1;
  std::atomic<int> calls{0};
  bool full() const { return count == 8; }
};
/* int f() { return a + b; } */
int f(int a = 3) {
  const char* text = "a < b";
  using Big = Wide<1 + 2>;
  return a + 1;
}
"""), [8, 14])

    def test_shares_follow_the_sizes_and_add_up(self):
        self.assertEqual(mutations.shares({"a": 10, "b": 300, "c": 290}, 60),
                         {"a": 1, "b": 30, "c": 29})
        self.assertEqual(mutations.shares({"a": 2, "b": 0}, 60), {"a": 2, "b": 0})


if __name__ == "__main__":
    unittest.main()
