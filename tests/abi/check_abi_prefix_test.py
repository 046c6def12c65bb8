"""check_abi_prefix detects every incompatible change and allows every compatible extension."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from check_abi_prefix import Header, compare, missing_in_layout  # noqa: E402

HEADER = (ROOT / "tests/abi/v1/abi.h").read_text()


class ComparisonTest(unittest.TestCase):
    def after(self, old, new):
        self.assertEqual(HEADER.count(old), 1, f"not exactly once in the header: {old!r}")
        return compare(HEADER, HEADER.replace(old, new))

    def test_a_header_fits_itself(self):
        self.assertEqual(compare(HEADER, HEADER), [])

    def test_reads_fields_with_pointers_functions_and_arguments(self):
        kind, fields = Header(HEADER).records["opmux_facts"]
        self.assertEqual(kind, "struct")
        self.assertEqual([name for name, _ in fields], ["struct_size", "reserved", "context", "get"])

    def test_reordered_fields_are_caught(self):
        problems = self.after("  size_t text_capacity;\n  size_t text_size;",
                              "  size_t text_size;\n  size_t text_capacity;")
        self.assertEqual(len(problems), 2)
        self.assertIn("opmux_error.text_capacity: field 3", problems[0])

    def test_a_field_inserted_in_the_middle_is_caught(self):
        problems = self.after("  void* stream;\n  void* workspace;",
                              "  void* stream;\n  void* queue;\n  void* workspace;")
        self.assertIn("opmux_call.workspace", problems[0])

    def test_a_changed_type_is_caught(self):
        self.assertIn("was 'uint64_t workspace_size', is 'uint32_t workspace_size'",
                      self.after("uint64_t workspace_size;", "uint32_t workspace_size;")[0])

    def test_a_changed_function_is_caught(self):
        self.assertTrue(self.after("int32_t (*run)(void* user_data, const opmux_call* call);",
                                   "int32_t (*run)(void* user_data, opmux_call* call);"))
        self.assertTrue(self.after("(void* pool, int64_t count, void* context,",
                                   "(void* pool, int32_t count, void* context,"))

    def test_a_changed_constant_is_caught(self):
        self.assertEqual(self.after("#define OPMUX_DECLINED 1 ", "#define OPMUX_DECLINED 7 "),
                         ["OPMUX_DECLINED: was '1', is '7'"])

    def test_a_struct_or_constant_that_went_away_is_caught(self):
        self.assertIn("opmux_point: gone", compare(HEADER, HEADER.replace("opmux_point", "opmux_p")))
        self.assertTrue(self.after("#define OPMUX_KIND_VENDOR 2\n", ""))

    def test_frozen_types_may_not_grow(self):
        self.assertIn("frozen", self.after("  int32_t id;\n", "  int32_t id;\n  int32_t more;\n")[0])

    def test_other_structs_and_the_minor_version_may_grow(self):
        self.assertEqual(self.after("} opmux_call;", "  void* more;\n} opmux_call;"), [])
        self.assertEqual(self.after("#define OPMUX_ABI_MINOR 0", "#define OPMUX_ABI_MINOR 1"), [])

    def test_a_struct_without_a_size_is_caught(self):
        addition = "typedef struct opmux_new {\n  int32_t a;\n} opmux_new;\n"
        problems = self.after("#define OPMUX_KIND_VENDOR 2\n",
                              "#define OPMUX_KIND_VENDOR 2\n" + addition)
        self.assertEqual(problems, ["opmux_new: does not start with 'uint32_t struct_size'"])

    def test_a_field_without_a_line_in_the_layout_is_caught(self):
        grown = Header(HEADER.replace("} opmux_call;", "  void* more;\n} opmux_call;"))
        table = (ROOT / "tests/abi/layout.inc").read_text()
        self.assertEqual(missing_in_layout(table, Header(HEADER)), [])
        self.assertIn("opmux_call.more", missing_in_layout(table, grown)[0])


if __name__ == "__main__":
    unittest.main()
