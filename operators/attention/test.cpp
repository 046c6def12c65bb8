#include "expected_attention.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

CallResult attend_to(const Tensor& y, const Heads& x, const AttentionCase& c = {},
                     const Tensor* mask = nullptr) {
  return attend_with(reference("attention"), y, x, c, mask);
}

void expect_attention(const Heads& x, const AttentionCase& c, const Tensor* mask = nullptr,
                      Layout layout = Layout::contiguous) {
  Tensor y = output_for(x, layout);
  const auto r = attend_to(y, x, c, mask);
  ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
  expect_close(y, expected_attention(x, c, mask));
}

TEST(ReferenceAttention, is_right_for_every_type_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (bool causal : {false, true}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + (causal ? " causal" : ""));
        expect_attention(make_heads(dtype, 2, 5, 9, 4, 2, 16, 8, layout), {.causal = causal},
                         nullptr, layout);
      }
    }
  }
}

TEST(ReferenceAttention, is_right_for_odd_sizes_and_every_group) {
  struct Shape {
    int64_t b, s, t, hq, hkv, d, dv;
  };
  for (const Shape& x :
       {Shape{1, 1, 1, 1, 1, 1, 1}, Shape{1, 1, 200, 6, 1, 65, 70}, Shape{2, 3, 67, 6, 3, 7, 5},
        Shape{1, 66, 66, 2, 2, 33, 65}, Shape{3, 4, 2, 4, 4, 8, 8}}) {
    for (bool causal : {false, true}) {
      SCOPED_TRACE("T=" + std::to_string(x.t) + (causal ? " causal" : ""));
      expect_attention(make_heads(kF32, x.b, x.s, x.t, x.hq, x.hkv, x.d, x.dv), {.causal = causal});
    }
  }
}

TEST(ReferenceAttention, heads_of_a_group_are_neighbours) {
  // With one key per head, a head of q returns the value of its head of k.
  Heads x = make_heads(kF32, 1, 1, 1, 6, 2, 4, 1);
  Tensor y = output_for(x);
  ASSERT_EQ(attend_to(y, x).outcome, OPMUX_OK);
  for (int64_t h = 0; h < 6; ++h) EXPECT_EQ(y.get(h), x.v.get(h / 3));
}

TEST(ReferenceAttention, causal_lets_the_last_query_see_the_last_key) {
  // All logits are equal, so the result is the mean of the visible values.
  for (auto [s, t] : {std::pair<int64_t, int64_t>{2, 5}, {5, 5}, {5, 2}}) {
    Heads x = make_heads(kF32, 1, s, t, 1, 1, 4, 1);
    x.q.fill([](int64_t) { return 0; });
    x.v.fill([](int64_t j) { return double(j + 1); });
    Tensor y = output_for(x);
    ASSERT_EQ(attend_to(y, x, {.causal = true}).outcome, OPMUX_OK);
    for (int64_t i = 0; i < s; ++i) {
      const int64_t seen = std::max<int64_t>(0, i + 1 + t - s);
      EXPECT_NEAR(y.get(i), seen == 0 ? 0 : double(seen + 1) / 2, 1e-6) << i;
    }
  }
}

TEST(ReferenceAttention, window_leaves_the_keys_less_than_that_far_away) {
  for (bool causal : {false, true}) {
    for (int64_t window : {1, 2, 64, 65, 1000}) {
      SCOPED_TRACE("window " + std::to_string(window) + (causal ? " causal" : ""));
      expect_attention(make_heads(kF32, 1, 70, 75, 2, 1, 8, 8),
                       {.causal = causal, .window = window});
    }
  }
  Heads x = make_heads(kF32, 1, 4, 4, 1, 1, 4, 3);
  Tensor y = output_for(x);
  ASSERT_EQ(attend_to(y, x, {.window = 1}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y.get(i), x.v.get(i));
}

TEST(ReferenceAttention, sink_takes_its_share_of_the_weight_and_adds_nothing) {
  Tensor sink = make(kBF16, {2});
  sink.fill([](int64_t i) { return i == 0 ? 2 : -HUGE_VAL; });
  const Heads x = make_heads(kF32, 2, 3, 9, 2, 1, 8, 8);
  expect_attention(x, {.causal = true, .window = 3, .sink = &sink});
  Tensor with = output_for(x), without = with;
  ASSERT_EQ(attend_to(with, x, {.sink = &sink}).outcome, OPMUX_OK);
  ASSERT_EQ(attend_to(without, x).outcome, OPMUX_OK);
  EXPECT_LT(std::fabs(with.get(0)), std::fabs(without.get(0)));
  EXPECT_EQ(with.get(8), without.get(8));
}

TEST(ReferenceAttention, scale_and_softcap_shape_the_logits) {
  const Heads x = make_heads(kF32, 1, 4, 20, 2, 2, 16, 8);
  for (double scale : {0.5, 0.0, -1.0}) expect_attention(x, {.scale = scale});
  for (double softcap : {0.5, 30.0}) {
    expect_attention(x, {.causal = true, .scale = 1, .softcap = softcap});
  }
}

TEST(ReferenceAttention, mask_of_bool_or_float_broadcasts) {
  const Heads x = make_heads(kF32, 2, 3, 10, 4, 2, 8, 8);
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {2, 4, 3, 10}, {1, 4, 1, 10}, {2, 1, 3, 1}, {3, 10}, {10}, {1}, {}}) {
    for (opmux_dtype dtype : {kBool, kF32, kF16, kBF16}) {
      Tensor mask = make(dtype, shape, Layout::strided_elements);
      const bool is_bool = dtype.code == OPMUX_DTYPE_BOOL;
      mask.fill([&](int64_t i) { return is_bool ? double(i % 3 != 0) : double(i % 5) / 2; });
      SCOPED_TRACE("rank " + std::to_string(shape.size()) + (is_bool ? " bool" : " float"));
      expect_attention(x, {.causal = true}, &mask);
    }
  }
}

TEST(ReferenceAttention, a_row_that_sees_no_key_is_zero) {
  Tensor sink = make(kF32, {1});
  sink.set(0, 1);
  Tensor no = make(kBool, {2, 4}), minus = make(kF32, {2, 4});
  no.fill([](int64_t i) { return i >= 4; });
  minus.fill([](int64_t i) { return i < 4 ? -HUGE_VAL : 0; });
  for (const Tensor* mask : {&no, &minus}) {
    const Tensor* const sinks[] = {&sink, nullptr};
    for (const Tensor* given : sinks) {
      const Heads x = make_heads(kF32, 1, 2, 4, 1, 1, 8, 3);
      Tensor y = output_for(x);
      ASSERT_EQ(attend_to(y, x, {.sink = given}, mask).outcome, OPMUX_OK);
      for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(y.get(i), 0);
      EXPECT_NE(y.get(3), 0);
    }
  }
  const Heads none = make_heads(kF32, 1, 2, 0, 1, 1, 8, 3);
  Tensor y = output_for(none);
  ASSERT_EQ(attend_to(y, none).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.get(i), 0);
}

TEST(ReferenceAttention, a_key_that_is_not_seen_may_hold_anything) {
  Heads x = make_heads(kF32, 1, 2, 4, 1, 1, 4, 2);
  const auto expected = expected_attention(x, {.causal = true});
  for (int64_t d = 0; d < 4; ++d) x.k.set(3 * 4 + d, NAN);
  x.v.set(3 * 2, HUGE_VAL);
  x.v.set(3 * 2 + 1, NAN);
  Tensor y = output_for(x), mask = make(kBool, {4});
  ASSERT_EQ(attend_to(y, x, {.causal = true}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 2; ++i) EXPECT_NEAR(y.get(i), expected[size_t(i)].value, 1e-5);
  EXPECT_TRUE(std::isnan(y.get(2)) && std::isnan(y.get(3)));
  mask.fill([](int64_t j) { return j != 3; });
  ASSERT_EQ(attend_to(y, x, {.causal = true}, &mask).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(y.get(i)));
}

TEST(ReferenceAttention, nan_in_a_query_affects_only_its_row) {
  Heads x = make_heads(kF32, 1, 3, 4, 1, 1, 4, 2);
  x.q.set(4, NAN);
  Tensor y = output_for(x);
  ASSERT_EQ(attend_to(y, x).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(y.get(i)), i / 2 == 1) << i;
}

TEST(ReferenceAttention, large_logits_do_not_overflow) {
  Heads x = make_heads(kF32, 1, 1, 3, 1, 1, 1, 1);
  x.q.set(0, 1000);
  x.k.fill([](int64_t j) { return double(j); });
  Tensor y = output_for(x);
  ASSERT_EQ(attend_to(y, x).outcome, OPMUX_OK);
  EXPECT_EQ(y.get(0), x.v.get(2));
}

TEST(ReferenceAttention, a_mask_of_another_shape_is_an_invalid_argument) {
  const Heads x = make_heads(kF32, 1, 2, 4, 1, 1, 4, 2);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{3}, {2, 3}, {1, 1, 1, 2, 4}}) {
    Tensor y = output_for(x);
    const auto before = y.bytes();
    const Tensor mask = make(kBool, shape);
    const auto r = attend_to(y, x, {}, &mask);
    EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
    EXPECT_EQ(r.code, "attention.mask");
    EXPECT_EQ(y.bytes(), before);
  }
}

TEST(ReferenceAttention, a_softcap_that_is_not_a_positive_number_is_an_invalid_argument) {
  const Heads x = make_heads(kF32, 1, 1, 1, 1, 1, 1, 1);
  for (double softcap : {-1.0, double(NAN), HUGE_VAL}) {
    const auto r = attend_to(output_for(x), x, {.softcap = softcap});
    EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
    EXPECT_EQ(r.code, "attention.softcap");
  }
}

}  // namespace
}  // namespace opmux::testing
