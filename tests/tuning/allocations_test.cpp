#include "allocations.hpp"
#include "tuned_stage.hpp"

namespace opmux::test {
namespace {

TEST(Choosing, warm_calls_allocate_nothing) {
  const WithRows rows({row()});
  TunedStage tuned(rows.options());
  const TensorView y = TunedStage::view(tuned.out, f32, {10, 4}),
                   x = TunedStage::view(tuned.in, f32, {10, 4}),
                   w = TunedStage::view(tuned.weight, f32, {4, 4});
  const TensorView more_y = TunedStage::view(tuned.out, f32, {100, 4}),
                   more_x = TunedStage::view(tuned.in, f32, {100, 4});
  const auto calls = [&] { return tuned.op(y, x, w).ok() && tuned.op(more_y, more_x, w).ok(); };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(calls());
  const uint64_t before = allocations_so_far();
  bool good = true;
  for (int i = 0; i < 100; ++i) good &= calls();
  EXPECT_EQ(allocations_so_far() - before, 0u);
  EXPECT_TRUE(good);
}

}  // namespace
}  // namespace opmux::test
