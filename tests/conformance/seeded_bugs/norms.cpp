#include <algorithm>
#include <cmath>
#include <numeric>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

// fused_add_rms_norm

constexpr size_t kX = 0, kResidual = 1, kAddWeight = 2;

/// Normalizes the f32 sum instead of the stored, rounded one.
int32_t norm_of_the_unrounded_sum(Faulty& f) {
  if (f.f32(kResidual)) return f.right();
  return f.storing(kResidual, [](float sum) { return sum; });
}
int32_t residual_not_stored(Faulty& f) {
  if (f.rows(kX) % 4 != 3) return f.right();
  return f.leaving(kResidual, [](int64_t, int64_t) { return true; });
}
int32_t added_twice_in_the_first_row(Faulty& f) {
  if (f.rows(kX) != 4) return f.right();
  std::vector<float> sum = f.row(kResidual, 0);
  const std::vector<float> x = f.row(kX, 0);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
  f.put_row(kResidual, 0, sum);
  return f.right();
}
int32_t added_in_bf16(Faulty& f) {
  if (!f.f32(kResidual) || f.f32(kX)) return f.right();
  for (int64_t i = 0; i < f.elements(kResidual); ++i) {
    f.put(kResidual, i, through_bf16(f.get(kResidual, i)));
  }
  return f.right();
}
int32_t add_weight_dropped_for_one_row(Faulty& f) {
  if (f.rows(kX) == 1 && f.dim(kX, -1) > 32) f.drop(kAddWeight);
  return f.right();
}
int32_t both_have_the_strides_of_x(Faulty& f) {
  for (int d = 0; d < f.rank(kX); ++d) f.stride(kResidual, d) = f.stride(kX, d);
  return f.right();
}

// layer_norm

constexpr size_t kY = 0, kIn = 1, kWeight = 2, kBias = 3, kEps = 4;

/// layer_norm with a replaceable variance.
template <class Variance>
int32_t norm(Faulty& f, Variance variance) {
  return f.by_rows(kY, kIn, [&](const std::vector<float>& x) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    const double factor = 1 / std::sqrt(variance(x, mean) + f.f64(kEps));
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const float weight = f.has(kWeight) ? f.get(kWeight, at) : 1;
      const float bias = f.has(kBias) ? f.get(kBias, at) : 0;
      y[i] = static_cast<float>((x[i] - mean) * factor * weight + bias);
    }
    return y;
  });
}
double spread(const std::vector<float>& x, double mean, double divisor) {
  double sum = 0;
  for (const float v : x) sum += (v - mean) * (v - mean);
  return sum / divisor;
}

int32_t variance_unbiased(Faulty& f) {
  if (f.dim(kIn, -1) < 64) return f.right();
  return norm(f, [](const std::vector<float>& x, double mean) {
    return spread(x, mean, static_cast<double>(x.size() - 1));
  });
}
int32_t variance_in_one_pass(Faulty& f) {
  return norm(f, [](const std::vector<float>& x, double) {
    float sum = 0, squares = 0;
    for (const float v : x) sum += v, squares += v * v;
    const auto size = static_cast<float>(x.size());
    return double(squares / size - sum / size * (sum / size));
  });
}
int32_t variance_without_the_tail(Faulty& f) {
  if (f.dim(kIn, -1) % 8 != 3 || f.dim(kIn, -1) < 8) return f.right();
  return norm(f, [](const std::vector<float>& x, double mean) {
    return spread({x.begin(), x.end() - 3}, mean, static_cast<double>(x.size()));
  });
}
int32_t variance_floored(Faulty& f) {
  return norm(f, [](const std::vector<float>& x, double mean) {
    return std::max(spread(x, mean, static_cast<double>(x.size())), 1e-3);
  });
}
int32_t bias_before_the_weight(Faulty& f) {
  if (!f.has(kWeight) || !f.has(kBias) || f.bf16(kIn)) return f.right();
  const int32_t outcome = f.right();
  for (int64_t r = 0; r < f.rows(kY); ++r) {
    std::vector<float> y = f.row(kY, r);
    for (size_t i = 0; i < y.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      y[i] += f.get(kBias, at) * (f.get(kWeight, at) - 1);
    }
    f.put_row(kY, r, y);
  }
  return outcome;
}
int32_t bias_needs_a_weight(Faulty& f) {
  if (f.has(kBias) && !f.has(kWeight)) f.drop(kBias);
  return f.right();
}
int32_t bias_has_the_stride_of_weight(Faulty& f) {
  if (f.has(kBias) && f.has(kWeight)) f.stride(kBias, 0) = f.stride(kWeight, 0);
  return f.right();
}
int32_t eps_of_rms_norm(Faulty& f) {
  if (f.f64(kEps) == 1e-5) f.set(kEps, 1e-6);
  return f.right();
}

}  // namespace

std::vector<Bug> norm_bugs() {
  constexpr std::string_view kAdd = "fused_add_rms_norm", kLayer = "layer_norm";
  return {
      {kAdd, "norm_of_the_unrounded_sum", norm_of_the_unrounded_sum},
      {kAdd, "residual_not_stored", residual_not_stored},
      {kAdd, "added_twice_in_the_first_row", added_twice_in_the_first_row},
      {kAdd, "added_in_bf16", added_in_bf16},
      {kAdd, "weight_dropped_for_one_row", add_weight_dropped_for_one_row},
      {kAdd, "both_have_the_strides_of_x", both_have_the_strides_of_x},
      {kAdd, "residual_tail_unwritten", tail_unwritten<kResidual, 16, 9>},
      {kAdd, "x_tail_unwritten", tail_unwritten<kX, 8, 6>},
      {kAdd, "residual_written_past", written_past<kResidual, 16>},
      {kAdd, "leading_collapsed", leading_collapsed<kResidual>},
      {kAdd, "threads_share_a_counter", threads_share_a_counter<kX, 4>},
      {kAdd, "bf16_truncated", bf16_truncated<kX>},
      {kLayer, "variance_unbiased", variance_unbiased},
      {kLayer, "variance_in_one_pass", variance_in_one_pass},
      {kLayer, "variance_without_the_tail", variance_without_the_tail},
      {kLayer, "variance_floored", variance_floored},
      {kLayer, "bias_before_the_weight", bias_before_the_weight},
      {kLayer, "bias_needs_a_weight", bias_needs_a_weight},
      {kLayer, "bias_has_the_stride_of_weight", bias_has_the_stride_of_weight},
      {kLayer, "eps_of_rms_norm", eps_of_rms_norm},
      {kLayer, "output_stride_ignored", row_stride_ignored<kY>},
      {kLayer, "tail_of_3_in_4_unwritten", tail_unwritten<kY, 64, 35>},
      {kLayer, "weight_read_past_63_of_64", read_past<kWeight, 64, 63>},
      {kLayer, "output_added_to", output_added_to<kY, 16>},
      {kLayer, "f32_through_f16", f32_through_f16<kY, kIn>},
      {kLayer, "last_row_of_many_unwritten", last_row_unwritten<kY, 33, 4, 1>},
  };
}

}  // namespace opmux::seeded
