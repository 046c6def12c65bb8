#include "dispatch/call/argument_words.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace opmux::dispatch {
namespace {

/// The shapes of two tensors stored in a plan, and both ways to compare with them.
class Remembered {
 public:
  explicit Remembered(int rank) {
    plan_.exact = exact_.data();
    plan_.guard_values = arguments_.data();
    plan_.tensor_count = 2;
    plan_.tensor_at()[1] = 1;
    plan_.rank_words = rank <= 2 ? 2 : 4;
    plan_.choose_comparison();
  }

  void keep(const TensorView& a, const TensorView& b) {
    const ArgValue values[] = {{.tensor = &a}, {.tensor = &b}};
    plan_.remember(values);
  }
  /// Stores the shapes, as the path for changed free dimensions does.
  void keep_shapes(const TensorView& a, const TensorView& b) {
    const Words both = words(a, b);
    plan_.rank_words == 2 ? both.remember<2>(plan_) : both.remember<4>(plan_);
  }
  bool knows(const TensorView& a, const TensorView& b) const {
    const ArgValue values[] = {{.tensor = &a}, {.tensor = &b}};
    const bool known = plan_.same_tensors(values);
    EXPECT_EQ(words(a, b).same(plan_), known);
    return known;
  }

 private:
  using Words = ArgumentWords<2, 0>;
  static Words words(const TensorView& a, const TensorView& b) {
    return {{reinterpret_cast<uint64_t>(&a), reinterpret_cast<uint64_t>(&b)}};
  }
  alignas(16) std::array<uint64_t, 24> exact_{};
  std::array<int64_t, 1> arguments_{};  ///< CachedPlan::tensor_at()
  CachedPlan plan_;
};

TensorView view(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                DType dtype = f32) {
  return {nullptr, dtype, shape, strides};
}

class RememberedTensors : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RememberedTensors, ::testing::Values(1, 2, 3, 4));

TEST_P(RememberedTensors, are_recognized_and_no_others_are) {
  const int rank = GetParam();
  const std::vector<int64_t> shape = {2, 3, 5, 7}, strides = {1000, 200, 30, 4};
  const std::vector<int64_t> dims(shape.begin(), shape.begin() + rank);
  const std::vector<int64_t> steps(strides.begin(), strides.begin() + rank);
  const TensorView same = view(dims, steps);
  Remembered kept(rank);
  kept.keep(same, same);
  EXPECT_TRUE(kept.knows(same, view(dims, steps)));
  EXPECT_FALSE(kept.knows(same, view(dims, steps, i32)));
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<int64_t> longer = dims, wider = steps;
    ++longer[d];
    ++wider[d];
    for (const TensorView& other : {view(longer, steps), view(dims, wider)}) {
      EXPECT_FALSE(kept.knows(other, same));
      EXPECT_FALSE(kept.knows(same, other));
      Remembered later(rank);
      later.keep(same, same);
      later.keep_shapes(same, other);
      EXPECT_TRUE(later.knows(same, other)) << "dimension " << d;
      EXPECT_FALSE(later.knows(same, same));
    }
  }
}

}  // namespace
}  // namespace opmux::dispatch
