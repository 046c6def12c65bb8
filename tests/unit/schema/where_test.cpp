#include "schema/expressions/where.hpp"

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "schema/schema.hpp"

namespace opmux::schema {
namespace {

/// Evaluates a condition over dimensions A, B and the arguments n (int), b (bool), m (enum).
bool holds(const std::string& condition, int64_t a, int64_t b, int64_t n = 0, int64_t flag = 0,
           int64_t mode = 0) {
  const Result<Schema> schema = parse_schema(
      "f(Tensor x[A, B], int n = 0, bool b = false, enum{p, q} m = p) where " + condition);
  EXPECT_TRUE(schema.has_value()) << schema.error().to_string();
  EXPECT_EQ(schema->where.size(), 1u) << condition;
  const std::array<int64_t, 2> dims{a, b};
  const std::array<int64_t, 4> scalars{0, n, flag, mode};
  return schema->where[0].holds(dims, scalars);
}

TEST(Where, compares) {
  EXPECT_TRUE(holds("A == B", 3, 3));
  EXPECT_FALSE(holds("A == B", 3, 4));
  EXPECT_TRUE(holds("A != B", 3, 4));
  EXPECT_TRUE(holds("A < B", 3, 4));
  EXPECT_FALSE(holds("A < B", 4, 4));
  EXPECT_TRUE(holds("A <= B", 4, 4));
  EXPECT_TRUE(holds("A > B", 5, 4));
  EXPECT_FALSE(holds("A >= B", 3, 4));
}

TEST(Where, calculates_with_the_usual_precedence) {
  EXPECT_TRUE(holds("A + B * 2 == 11", 5, 3));
  EXPECT_TRUE(holds("(A + B) * 2 == 16", 5, 3));
  EXPECT_TRUE(holds("A - B - 1 == 1", 5, 3));
  EXPECT_TRUE(holds("A - (B - 1) == 3", 5, 3));
  EXPECT_TRUE(holds("A / B == 1", 5, 3));
  EXPECT_TRUE(holds("A % B == 2", 5, 3));
  EXPECT_TRUE(holds("-A + B == -2", 5, 3));
}

TEST(Where, combines_conditions) {
  EXPECT_TRUE(holds("A == 1 || B == 2", 0, 2));
  EXPECT_FALSE(holds("A == 1 || B == 2", 0, 0));
  EXPECT_TRUE(holds("!(A == 1) || A == 1 && B == 1", 1, 1));
  EXPECT_FALSE(holds("!(A == 1 || B == 1)", 1, 0));
}

TEST(Where, reads_int_bool_and_enum_arguments) {
  EXPECT_TRUE(holds("A > n", 3, 0, 2));
  EXPECT_TRUE(holds("b", 0, 0, 0, 1));
  EXPECT_TRUE(holds("b == false", 0, 0, 0, 0));
  EXPECT_TRUE(holds("m == q", 0, 0, 0, 0, 1));
  EXPECT_FALSE(holds("m != q", 0, 0, 0, 0, 1));
}

TEST(Where, is_false_on_overflow_and_division_by_zero) {
  constexpr int64_t kMax = INT64_MAX;
  EXPECT_FALSE(holds("A + B > 0", kMax, 1));
  EXPECT_FALSE(holds("A * B > 0", kMax, 2));
  EXPECT_FALSE(holds("n - A < 0", kMax, 0, INT64_MIN));
  EXPECT_FALSE(holds("-n > 0", 0, 0, INT64_MIN));
  EXPECT_FALSE(holds("n / -1 > 0", 0, 0, INT64_MIN));
  EXPECT_FALSE(holds("n % -1 == 0", 0, 0, INT64_MIN));
  EXPECT_FALSE(holds("A / B >= 0", 1, 0));
  EXPECT_FALSE(holds("A % B == 0", 1, 0));
  EXPECT_FALSE(holds("!(A % B == 0)", 1, 0));
}

TEST(Where, is_false_for_a_dimension_that_is_not_bound) {
  EXPECT_FALSE(holds("A == B", -1, -1));
  EXPECT_FALSE(holds("A < B", -1, 3));
}

TEST(Where, lets_one_side_decide_alone) {
  EXPECT_TRUE(holds("B == 0 || A % B == 0", 3, 0));
  EXPECT_TRUE(holds("A % B == 0 || B == 0", 3, 0));
  EXPECT_TRUE(holds("!(B != 0 && A % B == 0)", 3, 0));
}

TEST(Where, refuses_steps_that_make_no_expression) {
  WhereExpression broken;
  EXPECT_FALSE(broken.holds({}, {}));
  broken.steps = {{WhereExpression::Op::add, 0, 0}};
  EXPECT_FALSE(broken.holds({}, {}));
  broken.steps = {{WhereExpression::Op::dim, 7, 0}};
  EXPECT_FALSE(broken.holds({}, {}));
  broken.steps.assign(WhereExpression::kMaxSteps + 1, {WhereExpression::Op::constant, 0, 1});
  EXPECT_FALSE(broken.holds({}, {}));
}

}  // namespace
}  // namespace opmux::schema
