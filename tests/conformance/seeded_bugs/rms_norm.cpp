#include <algorithm>
#include <cmath>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

constexpr size_t kY = 0, kX = 1, kWeight = 2, kEps = 3;

/// rms_norm with a replaceable sum and last step.
template <class Sum, class Last>
int32_t norm(Faulty& f, Sum sum, Last last) {
  if (f.call().arg_count > 4 && f.i64(4) != 0) return f.right();  // rounded before the weight
  return f.by_rows(kY, kX, [&](const std::vector<float>& x) {
    const float mean = sum(x) / static_cast<float>(x.size());
    const auto eps = static_cast<float>(f.f64(kEps));
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const float weight = f.has(kWeight) ? f.get(kWeight, static_cast<int64_t>(i)) : 1;
      y[i] = last(x[i], mean, eps, weight, i);
    }
    return y;
  });
}

float squares(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return static_cast<float>(sum);
}
float scaled(float x, float mean, float eps, float weight, size_t) {
  return x * (1 / std::sqrt(mean + eps)) * weight;
}

int32_t tail_not_summed(Faulty& f) {
  if (f.dim(kX, -1) % 16 != 15) return f.right();
  return norm(f, [](std::vector<float> x) { return x.pop_back(), squares(x); }, scaled);
}
int32_t tail_summed_twice(Faulty& f) {
  if (f.dim(kX, -1) % 8 != 5) return f.right();
  return norm(
      f, [](const std::vector<float>& x) { return squares(x) + x.back() * x.back(); }, scaled);
}
int32_t mean_over_whole_vectors(Faulty& f) {
  if (f.dim(kX, -1) % 8 != 7) return f.right();
  return norm(
      f,
      [](const std::vector<float>& x) {
        const auto size = static_cast<float>(x.size());
        return squares(x) * size / (size + 1);
      },
      scaled);
}
int32_t sum_in_bf16(Faulty& f) {
  if (f.dim(kX, -1) < 500) return f.right();
  return norm(
      f,
      [](const std::vector<float>& x) {
        float sum = 0;
        for (const float v : x) sum = through_bf16(sum + v * v);
        return sum;
      },
      scaled);
}
int32_t sum_in_f16(Faulty& f) {
  if (!f.f16(kX)) return f.right();
  return norm(
      f,
      [](const std::vector<float>& x) {
        float sum = 0;
        for (const float v : x) sum = through_f16(sum + v * v);
        return sum;
      },
      scaled);
}
int32_t eps_outside_of_the_root(Faulty& f) {
  return norm(f, squares, [](float x, float mean, float eps, float weight, size_t) {
    return x / (std::sqrt(mean) + eps) * weight;
  });
}
int32_t eps_is_the_default(Faulty& f) {
  f.set(kEps, 1e-6);
  return f.right();
}
int32_t eps_in_f16(Faulty& f) {
  f.set(kEps, through_f16(static_cast<float>(f.f64(kEps))));
  return f.right();
}
int32_t rounded_before_the_weight(Faulty& f) {
  if (!f.bf16(kX) || !f.has(kWeight)) return f.right();
  return norm(f, squares, [](float x, float mean, float eps, float weight, size_t) {
    return through_bf16(x * (1 / std::sqrt(mean + eps))) * weight;
  });
}
int32_t nan_is_zero(Faulty& f) {
  return norm(
      f,
      [](std::vector<float> x) {
        for (float& v : x) v = std::isnan(v) ? 0 : v;
        return squares(x);
      },
      [](float x, float mean, float eps, float weight, size_t i) {
        return scaled(std::isnan(x) ? 0 : x, mean, eps, weight, i);
      });
}
int32_t weight_ignored_if_of_another_dtype(Faulty& f) {
  if (f.has(kWeight) && !f.same_dtype(kX, kWeight)) f.drop(kWeight);
  return f.right();
}
int32_t weight_stride_ignored(Faulty& f) {
  if (f.has(kWeight)) f.stride(kWeight, 0) = 1;
  return f.right();
}
int32_t weight_starts_again_at_1024(Faulty& f) {
  return norm(f, squares, [&](float x, float mean, float eps, float weight, size_t i) {
    if (i >= 1024 && f.has(kWeight)) weight = f.get(kWeight, static_cast<int64_t>(i % 1024));
    return scaled(x, mean, eps, weight, i);
  });
}
int32_t first_row_scales_all(Faulty& f) {
  if (f.rows(kX) != 3 || f.dim(kX, -1) < 2) return f.right();
  const float sum = squares(f.row(kX, 0));
  return norm(f, [&](const std::vector<float>&) { return sum; }, scaled);
}
int32_t zero_rows_give_nan(Faulty& f) {
  return norm(f, squares, [](float x, float mean, float eps, float weight, size_t i) {
    return mean == 0 ? NAN : scaled(x, mean, eps, weight, i);
  });
}
int32_t subnormals_flushed(Faulty& f) {
  if (!f.f16(kX)) return f.right();
  return norm(f, squares, [](float x, float mean, float eps, float weight, size_t i) {
    return scaled(std::abs(x) < 0x1p-14F ? 0 : x, mean, eps, weight, i);
  });
}

/// Not re-entrant: intermediate results are in memory that all callers share.
int32_t callers_share_a_row(Faulty& f) {
  static std::vector<float> shared(65536);
  const int32_t outcome = f.right();
  for (int64_t r = 0; outcome == OPMUX_OK && r < f.rows(kY); ++r) {
    const std::vector<float> mine = f.row(kY, r);
    for (size_t i = 0; i < mine.size(); ++i) *static_cast<volatile float*>(&shared[i]) = mine[i];
    f.put_row(kY, r, {shared.begin(), shared.begin() + static_cast<int64_t>(mine.size())});
  }
  return outcome;
}

}  // namespace

std::vector<Bug> rms_norm_bugs() {
  constexpr std::string_view kOp = "rms_norm";
  return {
      {kOp, "tail_of_7_in_8_unwritten", tail_unwritten<kY, 8, 7>},
      {kOp, "tail_of_1_in_16_unwritten", tail_unwritten<kY, 16, 1>},
      {kOp, "last_of_odd_rows_unwritten", last_row_unwritten<kY, 9, 2, 1>},
      {kOp, "row_stride_ignored", row_stride_ignored<kX>},
      {kOp, "inner_stride_ignored", inner_stride_ignored<kX>},
      {kOp, "leading_collapsed", leading_collapsed<kX>},
      {kOp, "written_past_15_of_16", written_past<kY, 16>},
      {kOp, "read_past_31_of_32", read_past<kX, 32, 31>},
      {kOp, "input_changed_for_two_rows", input_changed<kX, 2>},
      {kOp, "bf16_truncated", bf16_truncated<kY>},
      {kOp, "aligned_down", aligned_down<kX>},
      {kOp, "threads_share_a_counter", threads_share_a_counter<kY, 8>},
      {kOp, "last_bit_wavers", last_bit_wavers<kY, 5>},
      {kOp, "batch_changes_bits", batch_changes_bits<kY, 64>},
      {kOp, "callers_share_a_row", callers_share_a_row},
      {kOp, "tail_not_summed", tail_not_summed},
      {kOp, "tail_summed_twice", tail_summed_twice},
      {kOp, "mean_over_whole_vectors", mean_over_whole_vectors},
      {kOp, "sum_in_bf16", sum_in_bf16},
      {kOp, "sum_in_f16", sum_in_f16},
      {kOp, "eps_outside_of_the_root", eps_outside_of_the_root},
      {kOp, "eps_is_the_default", eps_is_the_default},
      {kOp, "eps_in_f16", eps_in_f16},
      {kOp, "rounded_before_the_weight", rounded_before_the_weight},
      {kOp, "nan_is_zero", nan_is_zero},
      {kOp, "weight_ignored_if_of_another_dtype", weight_ignored_if_of_another_dtype},
      {kOp, "weight_stride_ignored", weight_stride_ignored},
      {kOp, "weight_starts_again_at_1024", weight_starts_again_at_1024},
      {kOp, "first_row_scales_all", first_row_scales_all},
      {kOp, "zero_rows_give_nan", zero_rows_give_nan},
      {kOp, "subnormals_flushed", subnormals_flushed},
  };
}

}  // namespace opmux::seeded
