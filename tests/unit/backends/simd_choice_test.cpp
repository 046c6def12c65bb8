#include "simd.hpp"

namespace opmux::testing {
namespace {

// Operators that select elements of a row: their choice must equal that of the reference exactly.
class SimdChoice : public SimdTest {
 protected:
  struct Choice {
    Tensor weights, ids;
  };
  static Choice outputs(opmux_dtype weight, opmux_dtype id, std::vector<int64_t> shape,
                        Layout layout = Layout::contiguous) {
    return {make(weight, shape, layout), make(id, shape, layout)};
  }
  static CallResult topk(const opmux_impl& impl, const Choice& to, const Tensor& logits,
                         bool renormalize = false) {
    return call(impl, {arg(to.weights), arg(to.ids), arg(logits), bool_arg(renormalize)});
  }
  // Selects `chosen` experts of every row.
  void expect_topk(const Tensor& logits, int64_t chosen, bool renormalize,
                   Layout layout = Layout::contiguous) const {
    const std::vector<int64_t> shape = {logits.dim(0), chosen};
    Choice found = outputs(kF32, kI32, shape, layout), exact = outputs(kF32, kI64, shape);
    const auto r = topk(simd("topk_softmax"), found, logits, renormalize);
    ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
    ASSERT_EQ(topk(reference("topk_softmax"), exact, logits, renormalize).outcome, OPMUX_OK);
    for (int64_t i = 0; i < found.ids.elements(); ++i) {
      ASSERT_EQ(found.ids.get(i), exact.ids.get(i)) << i;
    }
    expect_close(found.weights, around(exact.weights, (64 + double(logits.dim(-1))) * kEps));
  }
  // One row of f32.
  Choice choose(const std::vector<double>& values, int64_t chosen) const {
    Tensor logits = make(kF32, {1, int64_t(values.size())});
    logits.fill([&](int64_t i) { return values[size_t(i)]; });
    Choice to = outputs(kF32, kI32, {1, chosen});
    EXPECT_EQ(topk(simd("topk_softmax"), to, logits).outcome, OPMUX_OK);
    return to;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, SimdChoice, kSimdTargets, simd_target_name);

TEST_P(SimdChoice, topk_softmax_is_right_for_every_type_size_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (int64_t experts : {1, 7, 8, 60, 128, 257}) {
        for (int64_t chosen : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{40}, experts}) {
          if (chosen > experts) continue;
          SCOPED_TRACE(name(dtype) + " " + name(layout) + " E=" + std::to_string(experts) +
                       " K=" + std::to_string(chosen));
          const Tensor logits = random(dtype, {9, experts}, layout);
          for (bool renormalize : {false, true}) {
            expect_topk(logits, chosen, renormalize, layout);
          }
        }
      }
    }
  }
}

TEST_P(SimdChoice, topk_softmax_takes_the_first_of_equal_logits) {
  // Few distinct values: every rank has ties, some of them across vectors.
  Tensor logits = make(kF16, {20, 100});
  logits.fill([](int64_t i) { return double(i * 7919 % 5) / 2; });
  for (int64_t chosen : {4, 31, 33, 100}) expect_topk(logits, chosen, false);
}

TEST_P(SimdChoice, topk_softmax_writes_weights_of_any_type) {
  const Tensor logits = random(kBF16, {3, 64});
  for (opmux_dtype dtype : kFloats) {
    Choice found = outputs(dtype, kI64, {3, 8}), exact = outputs(dtype, kI64, {3, 8});
    ASSERT_EQ(topk(simd("topk_softmax"), found, logits).outcome, OPMUX_OK);
    ASSERT_EQ(topk(reference("topk_softmax"), exact, logits).outcome, OPMUX_OK);
    EXPECT_EQ(found.ids.bytes(), exact.ids.bytes());
    expect_close(found.weights, around(exact.weights, Format::of(dtype).half_ulp() * 4));
  }
}

TEST_P(SimdChoice, topk_softmax_of_masked_nan_and_infinite_logits_is_right) {
  const double none = -HUGE_VAL;
  const Choice masked = choose(std::vector<double>(40, none), 3);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(masked.weights.get(i), 0);
    EXPECT_EQ(masked.ids.get(i), double(i));
  }
  for (double special : {double(NAN), HUGE_VAL}) {
    std::vector<double> values(40, 1.0);
    values[37] = special;
    const Choice spoilt = choose(values, 2);
    EXPECT_EQ(spoilt.ids.get(0), std::isnan(special) ? 0 : 37);
    EXPECT_TRUE(std::isnan(spoilt.weights.get(0)) && std::isnan(spoilt.weights.get(1)));
  }
  EXPECT_EQ(choose({NAN, none, none}, 3).ids.get(1), 1);
}

// Parameters that differ in every row.
struct RowParameters {
  explicit RowParameters(int64_t rows, opmux_dtype number = kF32, opmux_dtype integer = kI64)
      : temperature(make(number, {rows}, Layout::strided_elements)),
        top_k(make(integer, {rows})),
        top_p(make(number, {rows})),
        seed(make(kI64, {rows})),
        offset(make(integer, {rows})) {
    temperature.fill([](int64_t i) { return i % 11 == 0 ? 0 : 0.25 * double(1 + i % 7); });
    top_k.fill([](int64_t i) { return double(i % 5 == 0 ? -1 : i % 9 == 0 ? 100000 : i % 40); });
    top_p.fill([](int64_t i) { return i % 3 == 0 ? 1 : 0.125 * double(i % 8); });
    seed.fill([](int64_t i) { return double(i * 1000003 - 5); });
    offset.fill([](int64_t i) { return double(i); });
  }
  Tensor temperature, top_k, top_p, seed, offset;
};

class SimdSample : public SimdTest {
 protected:
  // `given` selects the parameters to pass: one bit each, in order.
  CallResult sample(const opmux_impl& impl, const Tensor& tokens, const Tensor& logits,
                    const RowParameters& p, unsigned given = 31, const CallOptions& options = {}) {
    const Tensor* const all[] = {&p.temperature, &p.top_k, &p.top_p, &p.seed, &p.offset};
    std::vector<opmux_arg> args = {arg(tokens), arg(logits)};
    for (unsigned i = 0; i < 5; ++i) args.push_back(given >> i & 1 ? arg(*all[i]) : absent());
    return call(impl, args, options);
  }
  void expect_sample(const Tensor& logits, const RowParameters& p, unsigned given = 31) {
    const int64_t rows = logits.dim(0);
    Tensor found = make(kI64, {rows}), exact = make(kI64, {rows});
    const auto r = sample(simd("sample"), found, logits, p, given);
    ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
    ASSERT_EQ(sample(reference("sample"), exact, logits, p, given).outcome, OPMUX_OK);
    for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(found.get(i), exact.get(i)) << "row " << i;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, SimdSample, kSimdTargets, simd_target_name);

TEST_P(SimdSample, draws_the_token_of_the_reference_for_every_type_size_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kInnerContiguous) {
      for (int64_t size : {0, 1, 7, 16, 77, 255, 256, 257, 1031}) {
        SCOPED_TRACE(name(dtype) + " " + name(layout) + " V=" + std::to_string(size));
        expect_sample(random(dtype, {70, size}, layout), RowParameters(70, dtype, kI32));
      }
    }
  }
}

TEST_P(SimdSample, draws_the_token_of_the_reference_for_every_set_of_parameters) {
  const Tensor logits = random(kF32, {90, 300});
  const RowParameters p(90);
  for (unsigned given = 0; given < 32; ++given) {
    SCOPED_TRACE(given);
    expect_sample(logits, p, given);
  }
}

TEST_P(SimdSample, draws_the_token_of_the_reference_from_wide_narrow_and_large_rows) {
  const RowParameters p(40);
  for (double scale : {0.0, 1e-3, 1.0, 30.0, 1e4}) {
    SCOPED_TRACE(scale);
    const Tensor normal = random(kF32, {40, 5000});
    Tensor logits = make(kF32, {40, 5000});
    expect_sample(logits.fill([&](int64_t i) { return normal.get(i) * scale; }), p);
  }
  // Many ties, as narrow types produce.
  Tensor steps = make(kBF16, {40, 5000});
  expect_sample(steps.fill([](int64_t i) { return double(i * 7919 % 23) / 4; }), p);
}

TEST_P(SimdSample, masked_nan_and_infinite_logits_are_drawn_as_by_the_reference) {
  const RowParameters p(60);
  const double specials[] = {-HUGE_VAL, NAN, HUGE_VAL, 3.4e38, -3.4e38, 0};
  for (int64_t some = 1; some <= 6; ++some) {
    SCOPED_TRACE(some);
    Tensor logits = make(kF32, {60, 50});
    logits.fill([&](int64_t i) { return specials[i * 31 % 97 % some]; });
    expect_sample(logits, p);
    expect_sample(logits, p, 1);
  }
}

TEST_P(SimdSample, weights_are_those_of_the_definition_to_the_last_bit) {
  // The drawn number is compared with the first weight, so an error of one bit shows for some seed.
  const int64_t rows = 4000;
  Tensor logits = make(kF32, {rows, 2});
  logits.fill([](int64_t i) { return i % 2 == 0 ? -double(i) / 500 : 0; });
  RowParameters p(rows);
  expect_sample(logits, p, 24);
}

TEST_P(SimdSample, draws_the_same_on_any_number_of_threads) {
  const Tensor logits = random(kF32, {33, 4000});
  const RowParameters p(33);
  Tensor tokens = make(kI32, {33}), spread = tokens;
  ASSERT_EQ(sample(simd("sample"), tokens, logits, p).outcome, OPMUX_OK);
  int64_t pieces = 0;
  ASSERT_EQ(sample(simd("sample"), spread, logits, p, 31, {4, backwards, &pieces}).outcome,
            OPMUX_OK);
  EXPECT_EQ(pieces, 4);
  EXPECT_EQ(tokens.bytes(), spread.bytes());
}

TEST_P(SimdSample, wrong_parameters_are_invalid_arguments_and_nothing_is_written) {
  const Tensor logits = random(kF32, {2, 5});
  Tensor tokens = make(kI32, {2});
  const auto before = tokens.bytes();
  RowParameters cold(2), above(2);
  cold.temperature.set(1, -0.5);
  above.top_p.set(1, 1.5);
  const auto t = sample(simd("sample"), tokens, logits, cold);
  EXPECT_EQ(t.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(t.code, "sample.temperature");
  const auto p = sample(simd("sample"), tokens, logits, above);
  EXPECT_EQ(p.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(p.code, "sample.top_p");
  EXPECT_EQ(tokens.bytes(), before);
}

}  // namespace
}  // namespace opmux::testing
