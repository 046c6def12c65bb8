#include "registry/point.hpp"

#include <gtest/gtest.h>

namespace opmux::registry {
namespace {

TEST(PointSignature, has_one_spelling) {
  for (const char* text :
       {"gemm.tile(Device,int)->str", "  gemm.tile ( Device ,  int )  ->  str "}) {
    const auto signature = parse_point_signature(text);
    ASSERT_TRUE(signature) << text;
    EXPECT_EQ(signature->canonical(), "gemm.tile(Device, int) -> str");
  }
  EXPECT_EQ(parse_point_signature("warm() -> bool")->canonical(), "warm() -> bool");
}

TEST(PointSignature, knows_every_type) {
  const auto all = parse_point_signature("p(int, float, bool, str, Device) -> float");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->parameters,
            (std::vector{PointType::integer, PointType::floating, PointType::boolean,
                         PointType::string, PointType::device}));
  EXPECT_EQ(all->answer, PointType::floating);
}

TEST(PointSignature, names_the_nearest_type) {
  const auto misspelt = parse_point_signature("p(Devise) -> int");
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().reason(), "point.type");
  EXPECT_EQ(misspelt.error().message(),
            "'Devise' is not a type of specialization points (int, float, bool, str, Device); did "
            "you mean 'Device'?");
}

TEST(PointSignature, refuses_what_has_another_form) {
  for (const char* bad :
       {"", "p", "p()", "p() int", "P() -> int", "p)( -> int", "(int) -> int", "p..q() -> int"}) {
    const auto signature = parse_point_signature(bad);
    ASSERT_FALSE(signature) << bad;
    EXPECT_EQ(signature.error().reason(), "point.syntax") << bad;
  }
  for (const char* bad : {"p(int,) -> int", "p(,) -> int", "p() -> ", "p() -> int int"}) {
    EXPECT_EQ(parse_point_signature(bad).error().reason(), "point.type") << bad;
  }
}

TEST(PointSignature, limits_the_number_of_arguments) {
  std::string text = "p(int";
  for (int i = 0; i < OPMUX_MAX_ARGS; ++i) text += ", int";
  EXPECT_EQ(parse_point_signature(text + ") -> int").error().reason(), "point.syntax");
}

}  // namespace
}  // namespace opmux::registry
