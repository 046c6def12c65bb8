#include <opmux/opmux.hpp>

#include <algorithm>
#include <thread>

#include "base/system/cpu_features.hpp"
#include "expected_attention.hpp"
#include "library.hpp"

namespace opmux::testing {
namespace {

const LoadedPlugin& onednn() {
  static const LoadedPlugin plugin = load_library(OPMUX_TEST_ONEDNN_LIBRARY);
  return plugin;
}

// Runs each piece on a separate thread.
void on_threads(void* pool, int64_t count, void* context, void (*body)(void*, int64_t)) {
  *static_cast<int64_t*>(pool) = std::max(*static_cast<int64_t*>(pool), count);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i) threads.emplace_back(body, context, i);
  for (std::thread& thread : threads) thread.join();
}

class OneDnnAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string missing =
        base::missing_features(view(prefill().caps->cpu_features), base::cpu_features());
    if (!missing.empty()) GTEST_SKIP() << "processor lacks " << missing;
  }
  static const opmux_impl& prefill() {
    const opmux_impl* impl = onednn().find("attention", "prefill");
    if (!impl) throw std::runtime_error("no prefill of attention");
    return *impl;
  }
  // Sums in any order; weights are rounded to the values' type.
  static std::vector<Expected> expected(const Heads& x, const AttentionCase& c,
                                        const Tensor* mask = nullptr) {
    double largest = 0;
    for (int64_t i = 0; i < x.v.elements(); ++i) {
      largest = std::max(largest, std::fabs(x.v.get(i)));
    }
    const double rounding = x.v.dtype().bits == 16 ? 0x1p-9 * largest : 0;
    std::vector<Expected> all = expected_attention(x, c, mask);
    for (Expected& e : all) e.error = e.error * 4 + rounding;
    return all;
  }
  static void expect_attention(const Heads& x, const AttentionCase& c = {},
                               const Tensor* mask = nullptr, Layout layout = Layout::contiguous) {
    Tensor y = output_for(x, layout);
    const auto r = attend_with(prefill(), y, x, c, mask);
    ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
    expect_close(y, expected(x, c, mask));
  }
};

TEST_F(OneDnnAttention, is_right_for_both_types_and_every_stride) {
  for (opmux_dtype dtype : {kF32, kBF16}) {
    for (Layout layout : {Layout::contiguous, Layout::padded_rows, Layout::swapped_leading}) {
      for (bool causal : {false, true}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + (causal ? " causal" : ""));
        expect_attention(make_heads(dtype, 2, 18, 23, 4, 2, 40, 24, layout), {.causal = causal},
                         nullptr, layout);
      }
    }
  }
}

TEST_F(OneDnnAttention, is_right_for_odd_sizes_and_around_the_edges_of_blocks) {
  for (int64_t size : {1, 15, 31, 33, 64, 65, 130}) {
    SCOPED_TRACE("D=" + std::to_string(size));
    expect_attention(make_heads(kBF16, 1, 17, 19, 2, 1, size, 131 - size));
    expect_attention(make_heads(kF32, 1, 17, 19, 2, 1, size, 131 - size));
  }
  for (int64_t queries : {1, 2, 15, 127, 128, 129}) {
    for (int64_t keys : {63, 64, 255, 256, 257, 321}) {
      SCOPED_TRACE("S=" + std::to_string(queries) + " T=" + std::to_string(keys));
      expect_attention(make_heads(kBF16, 1, queries, keys, 1, 1, 8, 8), {.causal = true});
    }
  }
}

TEST_F(OneDnnAttention, honours_window_sink_scale_and_softcap) {
  Tensor sink = make(kBF16, {2});
  sink.fill([](int64_t i) { return i == 0 ? 2 : -HUGE_VAL; });
  const Heads x = make_heads(kF32, 1, 135, 300, 2, 1, 8, 8);
  for (bool causal : {false, true}) {
    for (int64_t window : {1, 70, 1000}) {
      SCOPED_TRACE("window " + std::to_string(window) + (causal ? " causal" : ""));
      expect_attention(x, {.causal = causal, .window = window, .sink = &sink});
    }
    for (double scale : {0.5, 0.0, -1.0}) expect_attention(x, {.causal = causal, .scale = scale});
    for (double softcap : {0.5, 30.0}) {
      expect_attention(x, {.causal = causal, .scale = 1, .softcap = softcap});
    }
  }
}

TEST_F(OneDnnAttention, mask_of_bool_or_float_broadcasts) {
  const Heads x = make_heads(kF32, 2, 20, 70, 4, 2, 8, 8);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{2, 4, 20, 70}, {1, 4, 1, 70}, {20, 1}, {70}, {}}) {
    for (opmux_dtype dtype : {kBool, kF32, kF16, kBF16}) {
      Tensor mask = make(dtype, shape, Layout::strided_elements);
      const bool is_bool = dtype.code == OPMUX_DTYPE_BOOL;
      mask.fill([&](int64_t i) {
        return is_bool ? double(i % 3 != 1) : i % 4 == 3 ? -HUGE_VAL : double(i % 5) / 2;
      });
      SCOPED_TRACE("rank " + std::to_string(shape.size()) + " " + name(dtype));
      expect_attention(x, {.causal = true, .softcap = 20}, &mask);
    }
  }
}

TEST_F(OneDnnAttention, a_row_that_sees_no_key_is_zero_and_a_hidden_key_may_hold_anything) {
  Heads x = make_heads(kF32, 1, 40, 20, 1, 1, 8, 3);
  Tensor sink = make(kF32, {1});
  sink.set(0, 1);
  expect_attention(x, {.causal = true, .sink = &sink});
  Tensor y = output_for(x);
  ASSERT_EQ(attend_with(prefill(), y, x, {.causal = true}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 20 * 3; ++i) EXPECT_EQ(y.get(i), 0);
  // Only the last query sees the last key.
  const std::vector<Expected> before = expected(x, {.causal = true});
  for (int64_t d = 0; d < 8; ++d) x.k.set(19 * 8 + d, NAN);
  ASSERT_EQ(attend_with(prefill(), y, x, {.causal = true}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 39 * 3; ++i) ASSERT_NEAR(y.get(i), before[size_t(i)].value, 1e-4);
  for (int64_t i = 39 * 3; i < 40 * 3; ++i) EXPECT_TRUE(std::isnan(y.get(i)));
}

TEST_F(OneDnnAttention, large_logits_at_any_position_do_not_overflow) {
  for (int64_t place : {0, 40, 255, 256, 399}) {
    Heads x = make_heads(kF32, 1, 16, 400, 1, 1, 1, 1);
    x.q.fill([](int64_t) { return 1000; });
    x.k.fill([&](int64_t j) { return j == place ? 3 : -1; });
    Tensor y = output_for(x);
    ASSERT_EQ(attend_with(prefill(), y, x).outcome, OPMUX_OK);
    for (int64_t i = 0; i < 16; ++i) EXPECT_NEAR(y.get(i), x.v.get(place), 1e-5);
  }
}

TEST_F(OneDnnAttention, has_the_same_bits_on_any_number_of_threads) {
  const Heads x = make_heads(kBF16, 2, 140, 300, 6, 2, 40, 40);
  Tensor y = output_for(x), spread = y;
  ASSERT_EQ(attend_with(prefill(), y, x, {.causal = true}).outcome, OPMUX_OK);
  int64_t most = 0;
  const CallOptions threads{3, on_threads, &most};
  ASSERT_EQ(attend_with(prefill(), spread, x, {.causal = true}, nullptr, threads).outcome,
            OPMUX_OK);
  EXPECT_GT(most, 1);
  EXPECT_EQ(y.bytes(), spread.bytes());
}

TEST_F(OneDnnAttention, wrong_data_is_an_invalid_argument_and_nothing_is_written) {
  const Heads x = make_heads(kF32, 1, 20, 30, 1, 1, 4, 2);
  const Tensor y = output_for(x), mask = make(kBool, {2, 3});
  const auto before = y.bytes();
  const auto r = attend_with(prefill(), y, x, {}, &mask);
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, "attention.mask");
  EXPECT_EQ(attend_with(prefill(), y, x, {.softcap = -1}).code, "attention.softcap");
  EXPECT_EQ(y.bytes(), before);
}

TEST_F(OneDnnAttention, is_chosen_for_prompts_and_leaves_decoding_and_other_types_to_others) {
  Runtime runtime = Runtime::create().value();
  const Operator attention = runtime.op("attention").value();
  const auto ran = [&](opmux_dtype dtype, int64_t queries) {
    const Heads x = make_heads(dtype, 1, queries, 64, 2, 2, 16, 16);
    const Tensor y = output_for(x);
    CallReport report;
    const Status status = attention.with(report)(TensorView(y.c()), TensorView(x.q.c()),
                                                 TensorView(x.k.c()), TensorView(x.v.c()));
    EXPECT_TRUE(status.ok()) << status.message();
    return report.implementation;
  };
  EXPECT_EQ(ran(kF32, 16), "attention/onednn.prefill");
  EXPECT_EQ(ran(kBF16, 16), "attention/onednn.prefill");
  EXPECT_NE(ran(kBF16, 15), "attention/onednn.prefill");
  EXPECT_NE(ran(kF16, 16), "attention/onednn.prefill");
}

}  // namespace
}  // namespace opmux::testing
