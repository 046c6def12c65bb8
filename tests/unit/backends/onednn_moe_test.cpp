#include "onednn.hpp"

namespace opmux::testing {
namespace {

// Tokens, hidden size, inner size, experts, choices per token.
struct MoeSizes {
  int64_t tokens, hidden, inner, experts, choices;
};

class OneDnnMoe : public OneDnn {
 protected:
  // Experts in turn, with a few choices left out.
  static void fill_ids(Tensor& ids, int64_t experts) {
    ids.fill([=](int64_t i) { return i % 11 == 7 ? -1.0 : double((i * 5 + i / 7) % experts); });
  }
  static void expect_experts(opmux_dtype dtype, const MoeSizes& s, std::string_view activation) {
    const Tensor x = random(dtype, {s.tokens, s.hidden});
    const Tensor w1 = random(dtype, {s.experts, 2 * s.inner, s.hidden});
    const Tensor w2 = random(dtype, {s.experts, s.hidden, s.inner});
    const Tensor weights = random(kF32, {s.tokens, s.choices});
    Tensor ids = make(kI32, {s.tokens, s.choices});
    fill_ids(ids, s.experts);
    const Tensor y = make(dtype, {s.tokens, s.hidden});
    EXPECT_EQ(ran("fused_moe", {}, as_view(y), as_view(x), as_view(w1), as_view(w2),
                  as_view(weights), as_view(ids), activation),
              "fused_moe/onednn.grouped");
    expect_near_reference(dtype, y, as_view(x), as_view(w1), as_view(w2), as_view(weights),
                          as_view(ids), activation);
  }
  // Intermediate values are rounded to 16 bits, and sums have another order.
  template <class... Args>
  static void expect_near_reference(opmux_dtype dtype, const Tensor& y, const Args&... args) {
    Tensor expected = y;
    const PolicyScope reference(runtime(), {.require = {"reference"}});
    ASSERT_TRUE(op("fused_moe")(as_view(expected), args...).ok());
    double largest = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      largest = std::max(largest, std::fabs(expected.get(i)));
    }
    ASSERT_GT(largest, 0.01);
    const double allowed = largest * (dtype.bits == 16 ? 0x1p-6 : 0x1p-16);
    for (int64_t i = 0; i < y.elements(); ++i) {
      ASSERT_NEAR(y.get(i), expected.get(i), allowed) << i;
    }
  }
};

TEST_F(OneDnnMoe, is_right_for_every_activation) {
  for (opmux_dtype dtype : {kF32, kBF16}) {
    for (const char* activation : {"silu", "gelu", "gelu_tanh"}) {
      SCOPED_TRACE(name(dtype) + " " + activation);
      expect_experts(dtype, {6, 40, 24, 4, 2}, activation);
    }
  }
}

TEST_F(OneDnnMoe, is_right_for_one_token_odd_sizes_and_unused_experts) {
  expect_experts(kF32, {1, 33, 7, 9, 3}, "silu");
  expect_experts(kBF16, {3, 17, 5, 64, 1}, "silu");
}

// More rows than are multiplied in one step.
TEST_F(OneDnnMoe, is_right_if_one_expert_takes_several_steps) {
  expect_experts(kF32, {300, 16, 8, 1, 1}, "silu");
  expect_experts(kBF16, {290, 16, 8, 2, 2}, "silu");
}

TEST_F(OneDnnMoe, an_unknown_expert_is_an_invalid_argument) {
  const Tensor x = random(kF32, {2, 16}), w1 = random(kF32, {3, 16, 16});
  const Tensor w2 = random(kF32, {3, 16, 8}), weights = random(kF32, {2, 1});
  Tensor ids = make(kI32, {2, 1});
  ids.fill([](int64_t) { return 3; });
  const Tensor y = make(kF32, {2, 16});
  const PolicyScope only(runtime(), {.require = {"fused_moe/onednn.grouped"}});
  const Status status = op("fused_moe")(as_view(y), as_view(x), as_view(w1), as_view(w2),
                                        as_view(weights), as_view(ids));
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.message();
}

}  // namespace
}  // namespace opmux::testing
