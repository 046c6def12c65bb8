#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "simd.hpp"

namespace opmux::testing {
namespace {

constexpr int64_t kPlaces = 16;  // Positions per block.

// Sequences with separate blocks, in reverse order.
struct Paged {
  int64_t kv_heads, group, size;
  std::vector<int64_t> keys, queries;

  int64_t tokens() const { return sum(queries); }
  int64_t most_blocks() const {
    return (*std::max_element(keys.begin(), keys.end()) + kPlaces - 1) / kPlaces;
  }
  Tensor table() const {
    const int64_t rows = int64_t(keys.size()), width = most_blocks(), last = rows * width - 1;
    return make(kI32, {rows, width}).fill([&](int64_t i) { return double(last - i); });
  }
  Tensor cache(int seed, Layout layout = Layout::contiguous) const {
    const int64_t blocks = int64_t(keys.size()) * most_blocks();
    return random(kBF16, {blocks, kPlaces, kv_heads, size}, layout, seed);
  }
  // The element of a cache at which key j of sequence b begins.
  int64_t place(int64_t b, int64_t j, int64_t head) const {
    const int64_t last = int64_t(keys.size()) * most_blocks() - 1;
    const int64_t block = last - (b * most_blocks() + j / kPlaces);
    return ((block * kPlaces + j % kPlaces) * kv_heads + head) * size;
  }
  static int64_t sum(const std::vector<int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  }
};

struct Options {
  bool causal = true;
  double scale = 0.2;
  int64_t window = 0;
  const Tensor* sink = nullptr;
};

Tensor attend(const opmux_impl& impl, const Paged& p, const Tensor& k, const Tensor& v,
              const Options& o = {}, Layout layout = Layout::contiguous) {
  const Tensor q = random(kBF16, {p.tokens(), p.kv_heads * p.group, p.size}, layout, 5);
  Tensor y = make(kBF16, {p.tokens(), p.kv_heads * p.group, p.size}, layout);
  const int64_t count = int64_t(p.keys.size());
  const Tensor table = p.table();
  const Tensor lens =
      make(kI32, {count}).fill([&](int64_t i) { return double(p.keys[size_t(i)]); });
  const Tensor starts = make(kI32, {count + 1}).fill([&](int64_t i) {
    return double(Paged::sum({p.queries.begin(), p.queries.begin() + i}));
  });
  const auto r = call(impl, {arg(y), arg(q), arg(k), arg(v), arg(table), arg(lens), arg(starts),
                             bool_arg(o.causal), arg(o.scale), int_arg(o.window), arg(o.sink)});
  EXPECT_EQ(r.outcome, OPMUX_OK) << r.text;
  return y;
}

// Weights have the eight significant bits of bf16, and so has the result.
void expect_near(const Tensor& y, const Tensor& expected) {
  for (int64_t i = 0; i < y.elements(); ++i) {
    ASSERT_NEAR(y.get(i), expected.get(i), 0x1p-7 + std::abs(expected.get(i)) * 0x1p-7) << i;
  }
}

class SimdPagedAmx : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string missing =
        base::missing_features(view(amx().caps->cpu_features), base::cpu_features());
    if (!missing.empty()) GTEST_SKIP() << "processor lacks " << missing;
    ASSERT_EQ(verify(0.0), OPMUX_OK);
  }
  static const opmux_impl& amx() { return *simd_plugin().find("paged_attention", "amx"); }
  static int32_t verify(double softcap) {
    const auto get = [](const void* context, uint32_t, opmux_str, int64_t* value) -> int32_t {
      *value = std::bit_cast<int64_t>(*static_cast<const double*>(context));
      return 1;
    };
    opmux_facts facts{};
    facts.context = &softcap;
    facts.get = get;
    return amx().verify(amx().user_data, &facts, nullptr);
  }
  static void expect_as_reference(const Paged& p, const Options& o = {},
                                  Layout layout = Layout::contiguous) {
    const Tensor k = p.cache(2, layout), v = p.cache(3, layout);
    expect_near(attend(amx(), p, k, v, o, layout),
                attend(reference("paged_attention"), p, k, v, o, layout));
  }
};

TEST_F(SimdPagedAmx, is_right_for_few_and_many_rows_of_a_tile) {
  for (const int64_t group : {1, 2, 3, 4, 5, 8, 16, 20}) {
    for (const int64_t size : {32, 64, 96}) {
      SCOPED_TRACE(std::to_string(group) + " heads of " + std::to_string(size));
      expect_as_reference({2, group, size, {1, 70, 129, 16}, {1, 1, 1, 1}});
      expect_as_reference({2, group, size, {40, 133}, {40, 9}});
    }
  }
}

TEST_F(SimdPagedAmx, is_right_for_every_number_of_keys) {
  for (int64_t keys = 1; keys <= 130; ++keys) {
    SCOPED_TRACE(std::to_string(keys) + " keys");
    expect_as_reference({1, 4, 32, {keys}, {1}});
    expect_as_reference({1, 4, 32, {keys}, {std::min<int64_t>(keys, 5)}});
  }
}

TEST_F(SimdPagedAmx, honours_window_scale_sink_and_causal) {
  const Paged p{2, 4, 64, {200, 90, 64}, {1, 30, 64}};
  const Tensor sink = random(kF32, {8});
  for (const int64_t window : {0, 1, 17, 64, 100}) {
    expect_as_reference(p, {.window = window});
    expect_as_reference(p, {.causal = false, .window = window, .sink = &sink});
  }
  for (const double scale : {0.0, -0.3, 2.0}) expect_as_reference(p, {.scale = scale});
}

TEST_F(SimdPagedAmx, is_right_for_every_stride) {
  for (const Layout layout : kInnerContiguous) {
    SCOPED_TRACE(name(layout));
    expect_as_reference({2, 4, 64, {77, 20}, {1, 20}}, {}, layout);
  }
}

TEST_F(SimdPagedAmx, keys_that_a_row_does_not_see_may_hold_anything) {
  for (const int64_t group : {1, 8}) {
    const Paged p{2, group, 32, {40, 70}, {20, 1}};
    Tensor k = p.cache(2), v = p.cache(3);
    // Only the last query of the first sequence sees its last key; positions after it are seen by
    // none.
    for (Tensor* cache : {&k, &v}) {
      for (int64_t j = 39; j < 48; ++j) {
        for (int64_t d = 0; d < 2 * 32; ++d) {
          cache->set(p.place(0, j, 0) + d, NAN);
        }
      }
    }
    const Tensor y = attend(amx(), p, k, v), right = attend(reference("paged_attention"), p, k, v);
    const int64_t row = 2 * group * 32;
    for (int64_t i = 0; i < y.elements(); ++i) {
      ASSERT_EQ(std::isnan(y.get(i)), i / row == 19) << i;
      if (i / row != 19) {
        ASSERT_NEAR(y.get(i), right.get(i), 0x1p-6) << i;
      }
    }
  }
}

TEST_F(SimdPagedAmx, leaves_capped_logits_to_others) { EXPECT_EQ(verify(30.0), OPMUX_DECLINED); }

TEST_F(SimdPagedAmx, does_not_promise_that_a_row_is_the_same_in_every_batch) {
  EXPECT_EQ(amx().flags & OPMUX_IMPL_BATCH_INVARIANT, 0u);
  EXPECT_NE(amx().flags & OPMUX_IMPL_DETERMINISTIC, 0u);
}

}  // namespace
}  // namespace opmux::testing
