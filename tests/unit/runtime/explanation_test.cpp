#include <opmux/explanation.hpp>

#include <gtest/gtest.h>

#include <sstream>

namespace opmux {
namespace {

Explanation example() {
  Explanation e;
  e.op = "rms_norm";
  e.arguments = "x=bf16[32,4096]";
  e.device = "cpu:0";
  e.generation = 7;
  e.candidates = {
      {"rms_norm/simd.avx512", "chosen", "", "priority 150, first of 2 accepted", 150, 150},
      {"rms_norm/reference.scalar", "last resort", "", "priority 50", 50, 50},
      {"rms_norm/acme.v2", "refused", "caps.multiple_of", "H must be a multiple of 4100", 100, 100},
      {"rms_norm/opencl.pocl", "refused", "policy.denied", "by \"broken-driver\"", 100, 100}};
  e.depends_on = {"dtype(x)", "H"};
  e.independent = {"rows"};
  return e;
}

TEST(Explanation, reads_as_a_table_with_the_last_resort_at_the_end) {
  EXPECT_EQ(example().to_string(),
            "rms_norm  x=bf16[32,4096]   cpu:0   generation 7\n"
            "  \xE2\x9C\x94 rms_norm/simd.avx512       chosen      "
            "priority 150, first of 2 accepted\n"
            "  \xE2\x9C\x98 rms_norm/acme.v2           refused     "
            "caps.multiple_of: H must be a multiple of 4100\n"
            "  \xE2\x9C\x98 rms_norm/opencl.pocl       refused     "
            "policy.denied by \"broken-driver\"\n"
            "  \xE2\x9C\x94 rms_norm/reference.scalar  last resort\n"
            "depends on: dtype(x), H         any number of rows takes the same plan\n");
}

TEST(Explanation, streams_what_it_reads_as) {
  std::ostringstream out;
  out << example();
  EXPECT_EQ(out.str(), example().to_string());
}

std::string last_line(Explanation e) {
  std::string text = e.to_string();
  text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

TEST(Explanation, says_which_dimensions_are_free) {
  Explanation e = example();
  e.independent = {"H"};
  EXPECT_EQ(last_line(e), "depends on: dtype(x), H         any H takes the same plan");
  e.independent = {"rows", "H", "D"};
  EXPECT_TRUE(last_line(e).ends_with("any number of rows, any H and any D take the same plan"));
  e.independent = {};
  EXPECT_EQ(last_line(e), "depends on: dtype(x), H");
}

TEST(Explanation, puts_the_free_dimensions_on_a_separate_line_after_many_facts) {
  Explanation e = example();
  e.depends_on.assign(10, "dtype(weight)");
  EXPECT_EQ(last_line(e), "            any number of rows takes the same plan");
  e.depends_on.clear();
  EXPECT_EQ(last_line(e), "depends on: nothing         any number of rows takes the same plan");
}

TEST(Explanation, ends_with_its_note) {
  Explanation e = example();
  e.note = "something to know";
  EXPECT_EQ(last_line(e), "note: something to know");
}

}  // namespace
}  // namespace opmux
