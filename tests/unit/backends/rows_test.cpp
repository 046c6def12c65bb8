#include "backends/common/rows.hpp"

#include "backends/common/sum.hpp"
#include "expected.hpp"

namespace opmux::backends {
namespace {

using testing::kF32;
using testing::kI32;
using testing::Tensor;

TEST(Rows, are_numbered_row_major_whatever_the_strides) {
  const Tensor t(kF32, {2, 3, 4}, {4, 8, 1});
  const Rows rows(t.c());
  ASSERT_EQ(rows.count(), 6);
  EXPECT_EQ(rows.offset(1), 8);
  EXPECT_EQ(rows.offset(3), 4);
  EXPECT_EQ(rows.offset(5), 4 + 16);
}

TEST(Rows, an_empty_leading_dimension_has_none_and_no_leading_dimension_has_one) {
  EXPECT_EQ(Rows(Tensor(kF32, {0, 4}).c()).count(), 0);
  EXPECT_EQ(Rows(Tensor(kF32, {4}).c()).count(), 1);
  EXPECT_EQ(Rows(Tensor(kF32, {}).c(), 0).count(), 1);
}

TEST(Rows, load_and_store_refuse_a_type_that_is_no_float) {
  const Tensor t(kI32, {4});
  float row[4] = {};
  EXPECT_THROW(load_row(t.c(), 0, 4, row), std::invalid_argument);
  EXPECT_THROW(store_row(t.c(), 0, 4, row), std::invalid_argument);
}

TEST(PairwiseSum, adds_every_term_once) {
  for (int64_t n : {0, 1, 31, 32, 33, 1000}) {
    EXPECT_EQ(pairwise_sum(0, n, [](int64_t i) { return float(i); }), float(n * (n - 1) / 2));
  }
}

TEST(PairwiseSum, stays_exact_where_adding_in_line_would_not) {
  // A sequential sum stops growing at 2^24; pairwise, all partial sums are exact.
  const int64_t n = int64_t{1} << 25;
  EXPECT_EQ(pairwise_sum(0, n, [](int64_t) { return 1.0f; }), 0x1p25f);
}

}  // namespace
}  // namespace opmux::backends
