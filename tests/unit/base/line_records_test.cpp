#include "base/line_records.hpp"

#include <gtest/gtest.h>

namespace opmux::base {
namespace {

TEST(CheckedLine, shows_any_change_of_its_text) {
  const std::string line = checked_line("some words");
  const std::string_view whole = std::string_view(line).substr(0, line.size() - 1);
  EXPECT_EQ(text_of_checked(whole), "some words");
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(text_of_checked(whole.substr(0, i)));
    std::string changed(whole);
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(text_of_checked(changed)) << changed;
  }
}

}  // namespace
}  // namespace opmux::base
