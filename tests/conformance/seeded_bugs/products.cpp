#include <algorithm>
#include <cmath>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

// matmul

constexpr size_t kY = 0, kA = 1, kB = 2;

/// A product with a replaceable sum: sum(left, right) gets the factors of the terms.
template <class Sum>
int32_t multiply(Faulty& f, Sum sum) {
  const int64_t height = f.dim(kA, -2), depth = f.dim(kA, -1), width = f.dim(kB, -1);
  std::vector<float> left(static_cast<size_t>(depth)), right(left);
  for (int64_t e = 0; e < f.elements(kY); ++e) {
    const int64_t row = e / width, pair = row / height;
    for (int64_t k = 0; k < depth; ++k) {
      left[static_cast<size_t>(k)] = f.get(kA, row * depth + k);
      right[static_cast<size_t>(k)] = f.get(kB, (pair * depth + k) * width + e % width);
    }
    f.put(kY, e, sum(left, right));
  }
  return OPMUX_OK;
}
using Factors = std::vector<float>;

int32_t sum_in_bf16(Faulty& f) {
  if (!f.bf16(kA) || !f.bf16(kB) || f.dim(kA, -1) < 16) return f.right();
  return multiply(f, [](const Factors& a, const Factors& b) {
    float sum = 0;
    for (size_t k = 0; k < a.size(); ++k) sum = through_bf16(sum + a[k] * b[k]);
    return sum;
  });
}
int32_t second_block_replaces_the_first(Faulty& f) {
  if (f.dim(kA, -1) <= 128) return f.right();
  return multiply(f, [](const Factors& a, const Factors& b) {
    double sum = 0;
    for (size_t k = (a.size() - 1) / 128 * 128; k < a.size(); ++k) sum += double(a[k]) * b[k];
    return static_cast<float>(sum);
  });
}
int32_t zeros_skipped(Faulty& f) {
  return multiply(f, [](const Factors& a, const Factors& b) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) sum += a[k] == 0 ? 0 : double(a[k]) * b[k];
    return static_cast<float>(sum);
  });
}
int32_t factors_in_bf16(Faulty& f) {
  if (!f.f32(kA) || !f.f32(kB) || f.dim(kA, -1) < 100) return f.right();
  return multiply(f, [](const Factors& a, const Factors& b) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) sum += double(through_bf16(a[k])) * through_bf16(b[k]);
    return static_cast<float>(sum);
  });
}
int32_t depth_tail_dropped(Faulty& f) {
  if (f.dim(kA, -1) % 8 != 7) return f.right();
  --f.shape(kA, -1);
  --f.shape(kB, -2);
  return f.right();
}
int32_t square_b_transposed(Faulty& f) {
  if (f.dim(kB, -1) == f.dim(kB, -2)) std::swap(f.stride(kB, -1), f.stride(kB, -2));
  return f.right();
}
int32_t first_b_for_all(Faulty& f) {
  if (f.rows(kY, 2) != 3) return f.right();
  for (int d = 0; d < f.rank(kB) - 2; ++d) f.stride(kB, d) = 0;
  return f.right();
}
int32_t no_terms_no_result(Faulty& f) { return f.dim(kA, -1) == 0 ? OPMUX_OK : f.right(); }
int32_t last_rows_of_a_panel_unwritten(Faulty& f) {
  const int64_t height = f.dim(kY, -2);
  if (height % 8 != 5) return f.right();
  return f.leaving(kY, [=](int64_t row, int64_t) { return row % height >= height - 1; });
}
int32_t b_row_stride_ignored(Faulty& f) {
  f.stride(kB, -2) = f.dim(kB, -1) * f.stride(kB, -1);
  return f.right();
}
int32_t a_thought_row_major(Faulty& f) {
  if (f.rank(kA) > 2 && !f.contiguous(kA)) f.make_contiguous(kA);
  return f.right();
}

// linear

constexpr size_t kX = 1, kWeight = 2, kBias = 3;

int32_t bias_ignored_if_of_another_dtype(Faulty& f) {
  if (f.has(kBias) && !f.same_dtype(kBias, kX)) f.drop(kBias);
  return f.right();
}
int32_t bias_stride_ignored(Faulty& f) {
  if (f.has(kBias)) f.stride(kBias, 0) = 1;
  return f.right();
}
int32_t bias_after_the_rounding(Faulty& f) {
  if (!f.has(kBias) || f.f32(kY)) return f.right();
  const opmux_tensor bias = f.tensor(kBias);
  f.drop(kBias);
  const int32_t outcome = f.right();
  for (int64_t e = 0; e < f.elements(kY); ++e) {
    float value = 0;
    backends::load_row(bias, e % f.dim(kY, -1) * bias.strides[0], 1, &value);
    f.put(kY, e, f.get(kY, e) + value);
  }
  return outcome;
}
int32_t bias_only_in_the_first_row(Faulty& f) {
  if (!f.has(kBias) || f.rows(kY) != 2) return f.right();
  f.right();
  std::vector<float> first = f.row(kY, 0);
  f.drop(kBias);
  const int32_t outcome = f.right();
  f.put_row(kY, 0, first);
  return outcome;
}
int32_t square_weight_transposed(Faulty& f) {
  if (f.dim(kWeight, 0) == f.dim(kWeight, 1)) std::swap(f.stride(kWeight, 0), f.stride(kWeight, 1));
  return f.right();
}
int32_t weight_row_stride_ignored(Faulty& f) {
  f.stride(kWeight, 0) = f.dim(kWeight, 1) * f.stride(kWeight, 1);
  return f.right();
}
int32_t linear_depth_tail_dropped(Faulty& f) {
  if (f.dim(kX, -1) % 16 != 15) return f.right();
  --f.shape(kX, -1);
  --f.shape(kWeight, 1);
  return f.right();
}
int32_t no_terms_no_bias(Faulty& f) {
  if (f.dim(kX, -1) == 0) f.drop(kBias);
  return f.right();
}
int32_t rows_beyond_32_repeat(Faulty& f) {
  const int32_t outcome = f.right();
  for (int64_t r = 32; r < f.rows(kY); ++r) f.put_row(kY, r, f.row(kY, r - 32));
  return outcome;
}
int32_t one_column_takes_the_last_row(Faulty& f) {
  if (f.dim(kY, -1) != 1 || f.rows(kY) < 2) return f.right();
  const int32_t outcome = f.right();
  f.put(kY, 0, f.get(kY, f.elements(kY) - 1));
  return outcome;
}

}  // namespace

std::vector<Bug> product_bugs() {
  constexpr std::string_view kMatmul = "matmul", kLinear = "linear";
  return {
      {kMatmul, "sum_in_bf16", sum_in_bf16},
      {kMatmul, "second_block_replaces_the_first", second_block_replaces_the_first},
      {kMatmul, "zeros_skipped", zeros_skipped},
      {kMatmul, "factors_in_bf16", factors_in_bf16},
      {kMatmul, "depth_tail_dropped", depth_tail_dropped},
      {kMatmul, "square_b_transposed", square_b_transposed},
      {kMatmul, "first_b_for_all", first_b_for_all},
      {kMatmul, "no_terms_no_result", no_terms_no_result},
      {kMatmul, "last_rows_of_a_panel_unwritten", last_rows_of_a_panel_unwritten},
      {kMatmul, "b_row_stride_ignored", b_row_stride_ignored},
      {kMatmul, "a_thought_row_major", a_thought_row_major},
      {kMatmul, "tail_columns_unwritten", tail_unwritten<kY, 16, 3>},
      {kMatmul, "written_past", written_past<kY, 8>},
      {kMatmul, "bf16_truncated", bf16_truncated<kY>},
      {kMatmul, "threads_share_a_counter", threads_share_a_counter<kY, 32>},
      {kLinear, "bias_ignored_if_of_another_dtype", bias_ignored_if_of_another_dtype},
      {kLinear, "bias_stride_ignored", bias_stride_ignored},
      {kLinear, "bias_after_the_rounding", bias_after_the_rounding},
      {kLinear, "bias_only_in_the_first_row", bias_only_in_the_first_row},
      {kLinear, "square_weight_transposed", square_weight_transposed},
      {kLinear, "weight_row_stride_ignored", weight_row_stride_ignored},
      {kLinear, "depth_tail_dropped", linear_depth_tail_dropped},
      {kLinear, "no_terms_no_bias", no_terms_no_bias},
      {kLinear, "rows_beyond_32_repeat", rows_beyond_32_repeat},
      {kLinear, "one_column_takes_the_last_row", one_column_takes_the_last_row},
      {kLinear, "leading_collapsed", leading_collapsed<kX>},
      {kLinear, "output_added_to", output_added_to<kY, 4>},
      {kLinear, "last_bit_wavers", last_bit_wavers<kY, 9>},
      {kLinear, "batch_changes_bits", batch_changes_bits<kY, 8>},
      {kLinear, "read_past_63_of_64", read_past<kWeight, 64, 63>},
  };
}

}  // namespace opmux::seeded
