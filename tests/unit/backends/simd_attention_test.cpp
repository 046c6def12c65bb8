#include "paged_case.hpp"
#include "simd.hpp"

namespace opmux::testing {
namespace {

class SimdAttention : public SimdTest {
 protected:
  const opmux_impl& attention() const { return simd("attention"); }
  void expect_attention(const Heads& x, const AttentionCase& c = {}, const Tensor* mask = nullptr,
                        Layout layout = Layout::contiguous) const {
    Tensor y = output_for(x, layout);
    const auto r = attend_with(attention(), y, x, c, mask);
    ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
    expect_close(y, expected_attention(x, c, mask));
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, SimdAttention, kSimdTargets, simd_target_name);

TEST_P(SimdAttention, is_right_for_every_type_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (bool causal : {false, true}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + (causal ? " causal" : ""));
        expect_attention(make_heads(dtype, 2, 5, 9, 4, 2, 80, 72, layout), {.causal = causal},
                         nullptr, layout);
      }
    }
  }
}

TEST_P(SimdAttention, is_right_for_every_number_of_heads_in_a_group_and_of_queries) {
  for (int64_t group = 1; group <= 9; ++group) {
    for (int64_t queries : {1, 3}) {
      SCOPED_TRACE("group " + std::to_string(group) + ", queries " + std::to_string(queries));
      const Heads x = make_heads(kBF16, 1, queries, 70, 2 * group, 2, 16, 16);
      expect_attention(x, {.causal = true});
    }
  }
}

TEST_P(SimdAttention, is_right_for_every_size_and_number_of_keys) {
  for (int64_t size : {1, 7, 16, 33, 64, 100, 131, 256, 640}) {
    SCOPED_TRACE("D=" + std::to_string(size));
    expect_attention(make_heads(kF32, 1, 2, 6, 2, 1, size, size));
    expect_attention(make_heads(kF16, 1, 1, 6, 1, 1, size, 641 - size));
  }
  for (int64_t keys : {1, 2, 3, 5, 63, 64, 65, 127, 130, 200}) {
    SCOPED_TRACE("T=" + std::to_string(keys));
    expect_attention(make_heads(kF32, 1, 3, keys, 3, 1, 24, 40), {.causal = true});
  }
}

TEST_P(SimdAttention, honours_window_sink_scale_and_softcap) {
  Tensor sink = make(kBF16, {2});
  sink.fill([](int64_t i) { return i == 0 ? 2 : -HUGE_VAL; });
  const Heads x = make_heads(kF32, 1, 70, 75, 2, 1, 8, 8);
  for (bool causal : {false, true}) {
    for (int64_t window : {1, 2, 64, 65, 1000}) {
      SCOPED_TRACE("window " + std::to_string(window) + (causal ? " causal" : ""));
      expect_attention(x, {.causal = causal, .window = window});
      expect_attention(x, {.causal = causal, .window = window, .sink = &sink});
    }
    for (double scale : {0.5, 0.0, -1.0}) expect_attention(x, {.causal = causal, .scale = scale});
    for (double softcap : {0.5, 30.0}) {
      expect_attention(x, {.causal = causal, .scale = 1, .softcap = softcap});
    }
  }
}

TEST_P(SimdAttention, mask_of_bool_or_float_broadcasts) {
  const Heads x = make_heads(kF32, 2, 3, 70, 4, 2, 8, 8);
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {2, 4, 3, 70}, {1, 4, 1, 70}, {2, 1, 3, 1}, {3, 70}, {70}, {1}, {}}) {
    for (opmux_dtype dtype : {kBool, kF32, kF16, kBF16}) {
      Tensor mask = make(dtype, shape, Layout::strided_elements);
      const bool is_bool = dtype.code == OPMUX_DTYPE_BOOL;
      mask.fill([&](int64_t i) { return is_bool ? double(i % 3 != 0) : double(i % 5) / 2; });
      SCOPED_TRACE("rank " + std::to_string(shape.size()) + (is_bool ? " bool" : " float"));
      expect_attention(x, {.causal = true, .softcap = 20}, &mask);
    }
  }
}

TEST_P(SimdAttention, a_row_that_sees_no_key_is_zero) {
  Tensor sink = make(kF32, {1}), no = make(kBool, {2, 4});
  sink.set(0, 1);
  no.fill([](int64_t i) { return i >= 4; });
  const Tensor* const sinks[] = {&sink, nullptr};
  for (const Tensor* given : sinks) {
    const Heads x = make_heads(kF32, 1, 2, 4, 1, 1, 8, 3);
    Tensor y = output_for(x);
    ASSERT_EQ(attend_with(attention(), y, x, {.sink = given}, &no).outcome, OPMUX_OK);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(y.get(i), 0);
    EXPECT_NE(y.get(3), 0);
    expect_attention(make_heads(kF32, 1, 9, 4, 1, 1, 8, 3), {.causal = true, .sink = given});
    expect_attention(make_heads(kF32, 1, 2, 0, 1, 1, 8, 3), {.sink = given});
  }
}

TEST_P(SimdAttention, a_key_that_is_not_seen_may_hold_anything) {
  // Four queries at once; only the last one sees the last key.
  Heads x = make_heads(kF32, 1, 4, 6, 1, 1, 4, 2);
  const auto expected = expected_attention(x, {.causal = true});
  for (int64_t d = 0; d < 4; ++d) x.k.set(5 * 4 + d, NAN);
  x.v.set(5 * 2, HUGE_VAL);
  x.v.set(5 * 2 + 1, NAN);
  Tensor y = output_for(x), mask = make(kBool, {6});
  ASSERT_EQ(attend_with(attention(), y, x, {.causal = true}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(y.get(i), expected[size_t(i)].value, 1e-5);
  EXPECT_TRUE(std::isnan(y.get(6)) && std::isnan(y.get(7)));
  mask.fill([](int64_t j) { return j != 5; });
  ASSERT_EQ(attend_with(attention(), y, x, {.causal = true}, &mask).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 8; ++i) EXPECT_TRUE(std::isfinite(y.get(i)));
}

TEST_P(SimdAttention, nan_in_a_query_or_an_infinite_logit_affects_only_its_row) {
  for (double special : {double(NAN), HUGE_VAL}) {
    for (double softcap : {0.0, 5.0}) {
      if (softcap > 0 && !std::isnan(special)) continue;  // A cap makes infinity finite.
      Heads x = make_heads(kF32, 1, 5, 70, 1, 1, 4, 2);
      x.k.fill([](int64_t i) { return double(1 + i % 3); });
      x.q.set(4, special);
      Tensor y = output_for(x);
      ASSERT_EQ(attend_with(attention(), y, x, {.softcap = softcap}).outcome, OPMUX_OK);
      for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(std::isnan(y.get(i)), i / 2 == 1) << i;
    }
  }
}

TEST_P(SimdAttention, large_logits_at_any_position_do_not_overflow) {
  for (int64_t place : {0, 40, 69, 139}) {
    Heads x = make_heads(kF32, 1, 1, 140, 1, 1, 1, 1);
    x.q.set(0, 1000);
    x.k.fill([&](int64_t j) { return j == place ? 3 : -1; });
    Tensor y = output_for(x);
    ASSERT_EQ(attend_with(attention(), y, x).outcome, OPMUX_OK);
    EXPECT_EQ(y.get(0), x.v.get(place));
  }
}

TEST_P(SimdAttention, runs_the_code_of_its_instruction_set) {
  // As for rms_norm: ones that are added in the lane of a large product are lost. The second key
  // has only the large product, so the weight of the first one shows how many ones were not lost.
  const std::string variant = GetParam();
  const int64_t lanes = variant == "sse4" ? 4 : variant == "avx2" ? 8 : 16;
  Heads x = make_heads(kF32, 1, 1, 2, 1, 1, 64, 1);
  const auto is_one = [](int64_t d) { return d > 0 && d % 4 == 0; };
  x.q.fill([&](int64_t d) { return d == 0 ? 4096 : is_one(d) ? 1 : 0; });
  x.k.fill([&](int64_t i) { return i % 64 == 0 ? 4096 : i < 64 && is_one(i) ? 1 : 0; });
  x.v.fill([](int64_t j) { return j == 0; });
  int64_t kept = 0;
  for (int64_t d = 0; d < 64; ++d) kept += is_one(d) && d % lanes != 0;
  Tensor y = output_for(x);
  ASSERT_EQ(attend_with(attention(), y, x, {.scale = 0.125}).outcome, OPMUX_OK);
  EXPECT_NEAR(y.get(0), 1 / (1 + std::exp(-double(kept) / 8)), 1e-6);
}

TEST_P(SimdAttention, a_query_has_the_same_bits_in_any_batch_and_on_any_number_of_threads) {
  const Heads x = make_heads(kF32, 2, 11, 150, 6, 2, 40, 40);
  Tensor y = output_for(x), spread = y;
  const AttentionCase window{.causal = true, .window = 90};
  ASSERT_EQ(attend_with(attention(), y, x, window).outcome, OPMUX_OK);
  int64_t blocks = 0;
  const CallOptions threads{4, backwards, &blocks};
  ASSERT_EQ(attend_with(attention(), spread, x, window, nullptr, threads).outcome, OPMUX_OK);
  EXPECT_GT(blocks, 1);
  EXPECT_EQ(y.bytes(), spread.bytes());
  // Only the last query of the first batch entry, with all heads.
  Heads one = make_heads(kF32, 1, 1, 150, 6, 2, 40, 40);
  one.q.fill([&](int64_t i) { return x.q.get(10 * 240 + i); });
  one.k.fill([&](int64_t i) { return x.k.get(i); });
  one.v.fill([&](int64_t i) { return x.v.get(i); });
  Tensor alone = output_for(one);
  ASSERT_EQ(attend_with(attention(), alone, one, window).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 240; ++i) ASSERT_EQ(alone.bits(i), y.bits(10 * 240 + i)) << i;
}

TEST_P(SimdAttention, wrong_data_is_an_invalid_argument_and_nothing_is_written) {
  const Heads x = make_heads(kF32, 1, 2, 4, 1, 1, 4, 2);
  Tensor y = output_for(x);
  const auto before = y.bytes();
  const Tensor mask = make(kBool, {2, 3});
  const auto r = attend_with(attention(), y, x, {}, &mask);
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, "attention.mask");
  const auto capped = attend_with(attention(), y, x, {.softcap = -1});
  EXPECT_EQ(capped.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(capped.code, "attention.softcap");
  EXPECT_EQ(y.bytes(), before);
}

class SimdPagedAttention : public SimdTest {
 protected:
  const opmux_impl& paged_attention() const { return simd("paged_attention"); }
};

INSTANTIATE_TEST_SUITE_P(Targets, SimdPagedAttention, kSimdTargets, simd_target_name);

TEST_P(SimdPagedAttention, serves_decode_and_prefill_at_once_for_every_type_and_stride) {
  expect_mixed_batches(paged_attention(), kInnerContiguous);
}

TEST_P(SimdPagedAttention, honours_window_sink_softcap_scale_and_causal) {
  expect_options_honoured(paged_attention());
}

TEST_P(SimdPagedAttention, a_sequence_without_keys_gives_zeros_and_one_without_queries_nothing) {
  PagedCase paged;
  paged.add(0, 2, {});
  paged.add(7, 0, {1, 2});
  paged.add(3, 5, {6});
  paged.add(3, 0, {6});
  ASSERT_EQ(paged.run(paged_attention()).outcome, OPMUX_OK);
  expect_close(paged.y, paged.expected());
}

TEST_P(SimdPagedAttention, positions_past_the_end_of_a_sequence_are_not_read) {
  PagedCase paged;
  paged.add(6, 1, {2, 3});
  for (int64_t i = 0; i < paged.k_cache.elements(); ++i) {
    if (i / 16 < 8 || i / 16 >= 14) paged.k_cache.set(i, NAN);
  }
  for (int64_t i = 0; i < paged.v_cache.elements(); ++i) {
    if (i / 12 < 8 || i / 12 >= 14) paged.v_cache.set(i, NAN);
  }
  ASSERT_EQ(paged.run(paged_attention()).outcome, OPMUX_OK);
  expect_close(paged.y, paged.expected());
}

TEST_P(SimdPagedAttention, gives_the_bits_of_attention_for_one_long_sequence) {
  const Heads x = make_heads(kBF16, 1, 5, 200, 6, 2, 40, 24);
  Tensor y = output_for(x), paged = make(kBF16, {5, 6, 24});
  ASSERT_EQ(attend_with(simd("attention"), y, x, {.causal = true}).outcome, OPMUX_OK);
  // Blocks of 8, in reverse order.
  const auto reversed = [](const Tensor& from, int64_t size) {
    Tensor cache = make(kBF16, {25, 8, 2, size});
    const int64_t block = 8 * 2 * size;
    return cache.fill([&](int64_t i) { return from.get((24 - i / block) * block + i % block); });
  };
  const Tensor k_cache = reversed(x.k, 40), v_cache = reversed(x.v, 24);
  Tensor q = make(kBF16, {5, 6, 40}), table = make(kI32, {1, 25}), lens = make(kI32, {1}),
         starts = make(kI32, {2});
  q.fill([&](int64_t i) { return x.q.get(i); });
  table.fill([](int64_t i) { return double(24 - i); });
  lens.set(0, 200);
  starts.fill([](int64_t i) { return i == 0 ? 0 : 5; });
  ASSERT_EQ(call(paged_attention(), {arg(paged), arg(q), arg(k_cache), arg(v_cache), arg(table),
                                     arg(lens), arg(starts), bool_arg(true)})
                .outcome,
            OPMUX_OK);
  EXPECT_EQ(paged.bytes(), y.bytes());
}

TEST_P(SimdPagedAttention, wrong_data_is_an_invalid_argument_and_nothing_is_written) {
  PagedCase paged;
  paged.add(4, 1, {0});
  paged.add(5, 1, {1, 8});
  const auto r = paged.run(paged_attention());
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, "paged.block");
  EXPECT_EQ(paged.y.bytes(), make(kF32, {2, 4, 6}).bytes());
}

}  // namespace
}  // namespace opmux::testing
