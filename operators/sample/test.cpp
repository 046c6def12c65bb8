#include <algorithm>
#include <array>
#include <map>

#include "backends/common/philox.hpp"
#include "backends/common/sampling.hpp"
#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

TEST(Philox, gives_the_published_numbers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(backends::philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(backends::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      backends::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(backends::random_bits(0, 0), 0xe169c58d6627e8d5u);
}

TEST(SamplingWeight, is_the_power_of_two_to_nine_digits) {
  uint64_t previous = uint64_t{1} << 40;
  for (uint64_t u = 0; u < uint64_t{41} << 24; u += 99991) {
    const double exact = std::exp2(40 - double(u) * 0x1p-24);
    const uint64_t found = backends::sampling_power(u);
    ASSERT_NEAR(double(found), u < uint64_t{40} << 24 ? exact : 0, exact * 2e-8 + 1) << u;
    ASSERT_LE(found, previous) << u;
    previous = found;
  }
  EXPECT_EQ(backends::sampling_power(0), uint64_t{1} << 40);
}

// Optional parameters of a call.
struct Parameters {
  const Tensor* temperature = nullptr;
  const Tensor* top_k = nullptr;
  const Tensor* top_p = nullptr;
  const Tensor* seed = nullptr;
  const Tensor* offset = nullptr;
};

CallResult run_sample(const Tensor& tokens, const Tensor& logits, const Parameters& p = {}) {
  return call(reference("sample"), {arg(tokens), arg(logits), arg(p.temperature), arg(p.top_k),
                                    arg(p.top_p), arg(p.seed), arg(p.offset)});
}

// Offsets 0, 1, 2, ... for `rows` rows.
Tensor counted(int64_t rows) {
  return make(kI64, {rows}).fill([](int64_t i) { return double(i); });
}
Tensor same(opmux_dtype dtype, int64_t rows, double value) {
  return make(dtype, {rows}).fill([=](int64_t) { return value; });
}
// The same logits in each of `rows` rows.
Tensor repeated(const std::vector<double>& logits, int64_t rows) {
  const int64_t size = int64_t(logits.size());
  Tensor tensor(kF32, {rows, size}, {0, 1});
  for (int64_t i = 0; i < size; ++i) tensor.set(i, logits[size_t(i)]);
  return tensor;
}

std::map<int64_t, double> shares(const std::vector<double>& logits, Parameters p,
                                 int64_t draws = 4000) {
  const Tensor offsets = counted(draws);
  p.offset = &offsets;
  Tensor tokens = make(kI64, {draws});
  const auto r = run_sample(tokens, repeated(logits, draws), p);
  EXPECT_EQ(r.outcome, OPMUX_OK) << r.text;
  std::map<int64_t, double> result;
  for (int64_t i = 0; i < draws; ++i) result[int64_t(tokens.get(i))] += 1.0 / double(draws);
  return result;
}

// Draws by the definition in double; -1 if the number is too close to a boundary to decide.
int64_t expected_token(const std::vector<double>& row, double temperature, int64_t top_k,
                       double top_p, uint64_t bits) {
  const std::vector<size_t> order = falling_order(row);
  std::vector<double> weights(row.size(), 0);
  const size_t kept = top_k > 0 ? std::min(size_t(top_k), row.size()) : row.size();
  double total = 0, before = 0;
  for (size_t i = 0; i < kept; ++i) {
    total += weights[order[i]] = std::exp((row[order[i]] - row[order[0]]) / temperature);
  }
  double left = 0;
  for (size_t i = 0; i < kept; ++i) {
    const double own = weights[order[i]];
    if (std::fabs(before - top_p * total) < 1e-5 * total && top_p < 1) return -1;
    if (i > 0 && before >= top_p * total) weights[order[i]] = 0;
    before += own;
    left += weights[order[i]];
  }
  left *= std::ldexp(double(bits), -64);
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::fabs(left - weights[i]) < 1e-5 * total) return -1;
    if (left < weights[i]) return int64_t(i);
    left -= weights[i];
  }
  return -1;
}

TEST(ReferenceSample, draws_what_the_definition_says_for_every_type_and_parameter) {
  const int64_t rows = 64;
  int told = 0;
  for (opmux_dtype dtype : kFloats) {
    for (opmux_dtype integer : {kI32, kI64}) {
      const Tensor logits = random(dtype, {rows, 77}, Layout::strided_elements);
      Tensor temperature = make(kF32, {rows}), top_k = make(integer, {rows});
      Tensor top_p = make(dtype, {rows}, Layout::strided_elements), seed = make(kI64, {rows});
      temperature.fill([](int64_t i) { return 0.25 * double(1 + i % 7); });
      top_k.fill([](int64_t i) { return double(i % 5 == 0 ? -1 : i % 40); });
      top_p.fill([](int64_t i) { return i % 3 == 0 ? 1 : 0.125 * double(i % 8); });
      seed.fill([](int64_t i) { return double(i * 1000003 - 5); });
      const Tensor offset = counted(rows);
      Tensor tokens = make(integer, {rows}, Layout::strided_elements);
      const auto r = run_sample(tokens, logits, {&temperature, &top_k, &top_p, &seed, &offset});
      ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
      EXPECT_TRUE(tokens.gaps_intact());
      const auto all = rows_of(logits);
      for (int64_t i = 0; i < rows; ++i) {
        const uint64_t bits = backends::random_bits(seed.bits(i), uint64_t(i));
        const int64_t expected = expected_token(all[size_t(i)], temperature.get(i),
                                                int64_t(top_k.get(i)), top_p.get(i), bits);
        if (expected < 0) continue;
        ++told;
        ASSERT_EQ(int64_t(tokens.get(i)), expected) << "row " << i;
      }
    }
  }
  EXPECT_GT(told, 300);
}

TEST(ReferenceSample, temperature_zero_takes_the_first_of_the_largest) {
  for (opmux_dtype dtype : kFloats) {
    Tensor logits = random(dtype, {2, 3, 50});
    logits.set(20, 100);
    logits.set(30, 100);
    const Tensor zero = make(kF32, {2, 3}).fill([](int64_t) { return 0; });
    Tensor tokens = make(kI32, {2, 3});
    ASSERT_EQ(run_sample(tokens, logits, {.temperature = &zero}).outcome, OPMUX_OK);
    const auto rows = rows_of(logits);
    for (int64_t i = 0; i < 6; ++i) {
      const auto& row = rows[size_t(i)];
      EXPECT_EQ(tokens.get(i), double(std::max_element(row.begin(), row.end()) - row.begin()));
    }
    EXPECT_EQ(tokens.get(0), 20);
  }
}

TEST(ReferenceSample, draws_in_proportion_to_the_softmax) {
  const std::vector<double> logits = {0, 1, -1, 2};
  const Tensor two = same(kF32, 4000, 2);
  for (const Tensor* temperature : {static_cast<const Tensor*>(nullptr), &two}) {
    auto found = shares(logits, {.temperature = temperature});
    double total = 0;
    for (double l : logits) total += std::exp(l / (temperature ? 2 : 1));
    for (size_t i = 0; i < logits.size(); ++i) {
      const double share = std::exp(logits[i] / (temperature ? 2 : 1)) / total;
      EXPECT_NEAR(found[int64_t(i)], share, 4 * std::sqrt(share / 4000)) << i;
    }
  }
}

TEST(ReferenceSample, top_k_keeps_the_first_of_equal_logits) {
  const Tensor k = same(kI32, 4000, 2);
  const auto found = shares({1, 3, 1, 1}, {.top_k = &k});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.contains(0) && found.contains(1));
}

TEST(ReferenceSample, top_p_keeps_the_smallest_set_that_reaches_it) {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const std::vector<double> logits = {std::log(2), std::log(4), std::log(1), std::log(1)};
  for (auto [p, kept] : {std::pair{0.0, 1u}, {0.4, 1u}, {0.6, 2u}, {0.8, 3u}, {1.0, 4u}}) {
    const Tensor top_p = same(kF32, 4000, p);
    EXPECT_EQ(shares(logits, {.top_p = &top_p}).size(), kept) << p;
  }
  // Of the two tokens that top_k keeps, the larger has probability 2/3.
  const Tensor k = same(kI32, 4000, 2), p = same(kF32, 4000, 0.6);
  EXPECT_EQ(shares(logits, {.top_k = &k, .top_p = &p}).size(), 1u);
}

TEST(ReferenceSample, a_draw_depends_on_seed_and_offset_and_not_on_its_row) {
  const Tensor logits = random(kF32, {1, 1000});
  Tensor many(kF32, {4, 1000}, {0, 1});
  for (int64_t i = 0; i < 1000; ++i) many.set(i, logits.get(i));
  Tensor seed = make(kI64, {4}), offset = make(kI64, {4}), tokens = make(kI64, {4});
  const double seeds[] = {1, 2, 1, 1}, offsets[] = {5, 5, 6, 5};
  seed.fill([&](int64_t i) { return seeds[i]; });
  offset.fill([&](int64_t i) { return offsets[i]; });
  ASSERT_EQ(run_sample(tokens, many, {.seed = &seed, .offset = &offset}).outcome, OPMUX_OK);
  EXPECT_EQ(tokens.get(0), tokens.get(3));
  EXPECT_NE(tokens.get(0), tokens.get(1));
  EXPECT_NE(tokens.get(0), tokens.get(2));
  Tensor alone = make(kI64, {1});
  const Tensor one = same(kI64, 1, 1), five = same(kI64, 1, 5);
  ASSERT_EQ(run_sample(alone, logits, {.seed = &one, .offset = &five}).outcome, OPMUX_OK);
  EXPECT_EQ(alone.get(0), tokens.get(0));
}

TEST(ReferenceSample, masked_and_nan_tokens_are_never_drawn) {
  const auto found = shares({-HUGE_VAL, 0, NAN, 0}, {});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.contains(1) && found.contains(3));
  const auto infinite = shares({5, HUGE_VAL, 7, HUGE_VAL}, {});
  EXPECT_EQ(infinite.size(), 2u);
  EXPECT_TRUE(infinite.contains(1) && infinite.contains(3));
}

TEST(ReferenceSample, a_row_without_a_possible_token_gives_minus_one) {
  const Tensor zero = same(kF32, 4000, 0);
  for (const Tensor* temperature : {static_cast<const Tensor*>(nullptr), &zero}) {
    const auto found = shares({-HUGE_VAL, NAN}, {.temperature = temperature});
    EXPECT_EQ(found.begin()->first, -1);
    EXPECT_EQ(found.size(), 1u);
  }
  Tensor token = make(kI32, {1});
  ASSERT_EQ(run_sample(token, make(kF32, {1, 0})).outcome, OPMUX_OK);
  EXPECT_EQ(token.get(0), -1);
}

TEST(ReferenceSample, wrong_parameters_are_invalid_arguments_and_nothing_is_written) {
  const Tensor logits = random(kF32, {2, 5});
  for (double bad : {-0.5, double(NAN), HUGE_VAL}) {
    Tensor parameter = same(kF32, 2, 0.5), tokens = make(kI32, {2});
    const auto before = tokens.bytes();
    parameter.set(1, bad);
    const auto t = run_sample(tokens, logits, {.temperature = &parameter});
    EXPECT_EQ(t.outcome, OPMUX_INVALID_ARGUMENT);
    EXPECT_EQ(t.code, "sample.temperature");
    EXPECT_NE(t.text.find("of row 1"), std::string::npos) << t.text;
    const auto p = run_sample(tokens, logits, {.top_p = &parameter});
    EXPECT_EQ(p.outcome, OPMUX_INVALID_ARGUMENT);
    EXPECT_EQ(p.code, "sample.top_p");
    EXPECT_EQ(tokens.bytes(), before);
  }
}

}  // namespace
}  // namespace opmux::testing
