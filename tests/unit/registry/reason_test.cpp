#include "registry/reason.hpp"

#include <set>

#include <gtest/gtest.h>

namespace opmux::registry {
namespace {

TEST(Reasons, are_listed_in_order_of_declaration) {
  const auto catalogue = reason_catalogue();
  for (size_t i = 0; i < catalogue.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(catalogue[i].reason), i) << catalogue[i].code;
    EXPECT_EQ(code_of(catalogue[i].reason), catalogue[i].code);
  }
  EXPECT_EQ(catalogue.size(), static_cast<size_t>(Reason::lock_deviation) + 1);
}

TEST(Reasons, have_a_unique_dotted_code_and_a_sentence) {
  std::set<std::string_view> codes;
  for (const ReasonInfo& info : reason_catalogue()) {
    EXPECT_TRUE(codes.insert(info.code).second) << info.code;
    EXPECT_TRUE(info.reason == Reason::none || info.code.find('.') != info.code.npos);
    EXPECT_TRUE(info.meaning.ends_with('.')) << info.code;
  }
  EXPECT_EQ(code_of(Reason::caps_multiple_of), "caps.multiple_of");
}

}  // namespace
}  // namespace opmux::registry
