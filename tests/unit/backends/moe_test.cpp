#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

struct Routing {
  Tensor weights, ids;
};

Routing route(const Tensor& logits, int64_t chosen, bool renormalize = false,
              Layout layout = Layout::contiguous, opmux_dtype weight_dtype = kF32,
              opmux_dtype integer = kI32) {
  std::vector<int64_t> shape;
  for (int i = 0; i + 1 < logits.c().ndim; ++i) shape.push_back(logits.dim(i));
  shape.push_back(chosen);
  Routing result{make(weight_dtype, shape, layout), make(integer, shape, layout)};
  const auto r = call(reference("topk_softmax"),
                      {arg(result.weights), arg(result.ids), arg(logits), bool_arg(renormalize)});
  EXPECT_EQ(r.outcome, OPMUX_OK) << r.text;
  return result;
}

void expect_routing(const Routing& routing, const Tensor& logits, bool renormalize) {
  const int64_t chosen = routing.ids.dim(-1);
  std::vector<Expected> expected;
  int64_t at = 0;
  for (const std::vector<double>& row : rows_of(logits)) {
    const std::vector<size_t> order = falling_order(row);
    double total = 0, magnitude = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (!renormalize || int64_t(i) < chosen) total += std::exp(row[order[i]]);
      magnitude = std::max(magnitude, std::fabs(row[i]));
    }
    for (int64_t i = 0; i < chosen; ++i) {
      ASSERT_EQ(routing.ids.get(at++), double(order[size_t(i)]));
      const double value = std::exp(row[order[size_t(i)]]) / total;
      expected.push_back(
          {value, value * (2 * pairwise_error(logits.dim(-1)) + (16 + 8 * magnitude) * kEps)});
    }
  }
  expect_close(routing.weights, expected);
  EXPECT_TRUE(routing.ids.gaps_intact());
}

TEST(ReferenceTopkSoftmax, is_right_for_every_type_shape_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (opmux_dtype integer : {kI32, kI64}) {
        for (bool renormalize : {false, true}) {
          for (const auto& shape : std::vector<std::vector<int64_t>>{
                   {1, 1}, {0, 8}, {5, 8}, {2, 3, 7}, {2, 1, 256}, {33}}) {
            SCOPED_TRACE(name(dtype) + " " + name(layout) + (renormalize ? " renormalized" : ""));
            const Tensor logits = random(dtype, shape, layout);
            const int64_t chosen = std::min<int64_t>(shape.back(), 4);
            expect_routing(route(logits, chosen, renormalize, layout, dtype, integer), logits,
                           renormalize);
          }
        }
      }
    }
  }
}

TEST(ReferenceTopkSoftmax, of_equal_logits_the_first_are_chosen) {
  Tensor logits = make(kF32, {1, 6});
  logits.fill([](int64_t i) { return i == 4 ? 2 : i % 2; });
  const Routing routing = route(logits, 4);
  const double ids[] = {4, 1, 3, 5};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(routing.ids.get(i), ids[i]);
}

TEST(ReferenceTopkSoftmax, all_experts_may_be_chosen_or_none) {
  const Tensor logits = random(kF32, {2, 5});
  expect_routing(route(logits, 5), logits, false);
  EXPECT_EQ(route(logits, 0).ids.elements(), 0);
}

TEST(ReferenceTopkSoftmax, nan_makes_the_weights_nan_and_is_chosen_last) {
  Tensor logits = make(kF32, {2, 3});
  logits.fill([](int64_t i) { return i == 0 ? NAN : double(i); });
  const Routing routing = route(logits, 3, true);
  const double ids[] = {2, 1, 0, 2, 1, 0};
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(routing.ids.get(i), ids[i]);
    EXPECT_EQ(std::isnan(routing.weights.get(i)), i < 3);
  }
}

TEST(ReferenceTopkSoftmax, a_row_of_minus_infinity_has_zero_weights) {
  for (bool renormalize : {false, true}) {
    Tensor logits = make(kF32, {1, 4});
    logits.fill([](int64_t) { return -HUGE_VAL; });
    const Routing routing = route(logits, 2, renormalize);
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(routing.ids.get(i), double(i));
      EXPECT_EQ(routing.weights.get(i), 0);
    }
  }
}

struct Moe {
  Tensor x, w1, w2, weights, ids;
};

// Tokens, experts per token, number of experts, hidden and inner size.
Moe make_moe(opmux_dtype dtype, std::vector<int64_t> leading, int64_t k, int64_t e, int64_t h,
             int64_t inner, Layout layout = Layout::contiguous) {
  const auto with = [&](int64_t last) {
    std::vector<int64_t> shape = leading;
    shape.push_back(last);
    return shape;
  };
  Moe moe{random(dtype, with(h), layout), random(dtype, {e, 2 * inner, h}, layout, 2),
          random(dtype, {e, h, inner}, layout, 3), random(kF32, with(k), layout, 4),
          make(kI32, with(k), layout)};
  moe.ids.fill([&](int64_t i) { return double((i * 3 + i / k) % e); });
  return moe;
}

CallResult run_moe(const Tensor& y, const Moe& moe, int64_t activation = 0) {
  return call(reference("fused_moe"), {arg(y), arg(moe.x), arg(moe.w1), arg(moe.w2),
                                       arg(moe.weights), arg(moe.ids), enum_arg(activation)});
}

// An error of the inner values propagates through the second product.
std::vector<Expected> expected_moe(const Moe& moe, double (*activation)(double)) {
  const int64_t h = moe.x.dim(-1), inner = moe.w2.dim(2), k = moe.ids.dim(-1);
  std::vector<Expected> result;
  for (int64_t t = 0; t < moe.x.elements() / h; ++t) {
    std::vector<Expected> row(size_t(h), {0, 0});
    for (int64_t c = t * k; c < (t + 1) * k; ++c) {
      const int64_t expert = int64_t(moe.ids.get(c));
      if (expert < 0) continue;
      std::vector<Expected> gated;
      for (int64_t i = 0; i < inner; ++i) {
        double sums[2] = {}, sizes[2] = {};
        for (int64_t half = 0; half < 2; ++half) {
          for (int64_t d = 0; d < h; ++d) {
            const double term =
                moe.x.get(t * h + d) * moe.w1.get((expert * 2 * inner + half * inner + i) * h + d);
            sums[half] += term;
            sizes[half] += std::fabs(term);
          }
        }
        // The slope of these activations is at most 1.2.
        const double error = (pairwise_error(h) + 16 * kEps) *
                             (1.2 * sizes[0] * (std::fabs(sums[1]) + 1) +
                              (std::fabs(activation(sums[0])) + 1) * sizes[1] +
                              std::pow(std::fabs(sums[0]), 3) * std::fabs(sums[1]));
        gated.push_back({activation(sums[0]) * sums[1], error});
      }
      for (int64_t d = 0; d < h; ++d) {
        double value = 0, size = 0, error = 0;
        for (int64_t i = 0; i < inner; ++i) {
          const double w = moe.w2.get((expert * h + d) * inner + i);
          value += gated[size_t(i)].value * w;
          size += std::fabs(gated[size_t(i)].value * w);
          error += gated[size_t(i)].error * std::fabs(w);
        }
        const double weight = moe.weights.get(c);
        row[size_t(d)].value += weight * value;
        row[size_t(d)].error +=
            std::fabs(weight) * (error + size * (pairwise_error(inner) + double(k + 2) * kEps));
      }
    }
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

double gelu_of(double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }
double gelu_tanh_of(double v) {
  return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
}

TEST(ReferenceFusedMoe, is_right_for_every_type_and_stride) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      SCOPED_TRACE(name(dtype) + " " + name(layout));
      const Moe moe = make_moe(dtype, {2, 3}, 2, 4, 5, 7, layout);
      Tensor y = make(dtype, {2, 3, 5}, layout);
      const auto r = run_moe(y, moe);
      ASSERT_EQ(r.outcome, OPMUX_OK) << r.text;
      expect_close(y, expected_moe(moe, silu));
    }
  }
}

TEST(ReferenceFusedMoe, has_three_activations_and_is_right_for_odd_sizes) {
  const Moe moe = make_moe(kF32, {9}, 3, 5, 67, 65);
  double (*const activations[])(double) = {silu, gelu_of, gelu_tanh_of};
  for (int64_t i = 0; i < 3; ++i) {
    Tensor y = make(kF32, {9, 67});
    ASSERT_EQ(run_moe(y, moe, i).outcome, OPMUX_OK);
    expect_close(y, expected_moe(moe, activations[i]));
  }
}

TEST(ReferenceFusedMoe, a_negative_expert_adds_nothing_and_no_expert_gives_zero) {
  Moe moe = make_moe(kF32, {3}, 2, 4, 6, 4);
  moe.ids.set(1, -1);
  moe.ids.set(4, -7);
  moe.ids.set(5, -1);
  moe.weights.set(1, NAN);
  Tensor y = make(kF32, {3, 6});
  ASSERT_EQ(run_moe(y, moe).outcome, OPMUX_OK);
  expect_close(y, expected_moe(moe, silu));
  for (int64_t i = 12; i < 18; ++i) EXPECT_EQ(y.get(i), 0);
  const Moe none = make_moe(kF32, {2}, 0, 4, 6, 4);
  Tensor zero = random(kF32, {2, 6});
  ASSERT_EQ(run_moe(zero, none).outcome, OPMUX_OK);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(zero.get(i), 0);
}

TEST(ReferenceFusedMoe, an_expert_may_be_chosen_twice_and_nan_stays_with_its_token) {
  Moe moe = make_moe(kF32, {3}, 2, 4, 6, 4);
  moe.ids.fill([](int64_t) { return 2; });
  moe.x.set(6, NAN);
  Tensor y = make(kF32, {3, 6});
  ASSERT_EQ(run_moe(y, moe).outcome, OPMUX_OK);
  expect_close(y, expected_moe(moe, silu));
  EXPECT_TRUE(std::isnan(y.get(6)) && std::isfinite(y.get(0)) && std::isfinite(y.get(12)));
}

TEST(ReferenceFusedMoe, a_token_has_the_same_bits_in_any_batch) {
  const Moe many = make_moe(kF32, {7}, 2, 3, 40, 33);
  Moe one = make_moe(kF32, {1}, 2, 3, 40, 33);
  one.x.fill([&](int64_t i) { return many.x.get(5 * 40 + i); });
  one.weights.fill([&](int64_t i) { return many.weights.get(10 + i); });
  one.ids.fill([&](int64_t i) { return many.ids.get(10 + i); });
  Tensor y_many = make(kF32, {7, 40}), y_one = make(kF32, {1, 40});
  run_moe(y_many, many);
  run_moe(y_one, one);
  for (int64_t i = 0; i < 40; ++i) ASSERT_EQ(y_one.bits(i), y_many.bits(5 * 40 + i));
}

TEST(ReferenceFusedMoe, an_unknown_expert_is_an_invalid_argument) {
  Moe moe = make_moe(kF32, {3}, 2, 4, 6, 4);
  moe.ids.set(3, 4);
  const Tensor y = make(kF32, {3, 6}), before = y;
  const auto r = run_moe(y, moe);
  EXPECT_EQ(r.outcome, OPMUX_INVALID_ARGUMENT);
  EXPECT_EQ(r.code, "moe.expert");
  EXPECT_EQ(r.text, "expert 4 of token 1 is not below 4");
  EXPECT_EQ(y.bytes(), before.bytes());
}

}  // namespace
}  // namespace opmux::testing
