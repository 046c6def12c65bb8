#include "base/system/cpu_features.hpp"

#include <gtest/gtest.h>

namespace opmux::base {
namespace {

TEST(CpuFeatures, reads_the_flags_line_of_x86_and_the_features_line_of_arm) {
  EXPECT_EQ(parse_cpu_features("model name\t: x\nflags\t\t: fpu avx2 fma\nbugs\t: y\n"),
            (std::set<std::string, std::less<>>{"avx2", "fma", "fpu"}));
  EXPECT_EQ(parse_cpu_features("Features\t: fp asimd sve\n"),
            (std::set<std::string, std::less<>>{"asimd", "fp", "sve"}));
}

TEST(CpuFeatures, finds_none_in_a_text_without_such_a_line) {
  EXPECT_TRUE(parse_cpu_features("processor : 0\n").empty());
}

TEST(CpuFeatures, names_the_missing_ones_in_the_order_they_were_asked_for) {
  const std::set<std::string, std::less<>> have{"avx2", "fma"};
  EXPECT_EQ(missing_features("fma,avx2", have), "");
  EXPECT_EQ(missing_features("", have), "");
  EXPECT_EQ(missing_features("sve,avx2,amx_bf16", have), "sve,amx_bf16");
}

TEST(CpuFeatures, of_this_machine_are_read_once) {
  EXPECT_EQ(&cpu_features(), &cpu_features());
  EXPECT_FALSE(cpu_features().contains("no_such_feature"));
}

}  // namespace
}  // namespace opmux::base
