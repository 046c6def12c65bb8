#include <algorithm>
#include <cmath>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

constexpr size_t kY = 0, kX = 1, kScale = 2;

/// exp(x - shift(x)) / sum(x, powers) on scaled x.
template <class Shift, class Sum>
int32_t softmax(Faulty& f, Shift shift, Sum sum) {
  const auto scale = static_cast<float>(f.f64(kScale));
  return f.by_rows(kY, kX, [&](std::vector<float> x) {
    for (float& v : x) v *= scale;
    const float less = shift(x);
    for (float& v : x) v = std::exp(v - (std::isinf(less) && less < 0 ? 0 : less));
    const float all = sum(x);
    for (float& v : x) v = all == 0 ? 0 : v / all;
    return x;
  });
}
float largest(const std::vector<float>& x) { return *std::max_element(x.begin(), x.end()); }
float total(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += v;
  return static_cast<float>(sum);
}

int32_t not_shifted(Faulty& f) {
  return softmax(f, [](const std::vector<float>&) { return 0.0F; }, total);
}
int32_t shifted_by_the_first(Faulty& f) {
  if (f.dim(kX, -1) < 256) return f.right();
  return softmax(f, [](const std::vector<float>& x) { return x.front(); }, total);
}
int32_t largest_without_the_tail(Faulty& f) {
  if (f.dim(kX, -1) % 16 != 1 || f.dim(kX, -1) < 16) return f.right();
  return softmax(f, [](std::vector<float> x) { return x.pop_back(), largest(x) - 80; }, total);
}
int32_t largest_is_at_least_zero(Faulty& f) {
  return softmax(f, [](const std::vector<float>& x) { return std::max(0.0F, largest(x)); }, total);
}
int32_t sum_without_the_tail(Faulty& f) {
  if (f.dim(kX, -1) % 8 != 2 || f.dim(kX, -1) < 8) return f.right();
  return softmax(f, largest, [](std::vector<float> x) {
    x.resize(x.size() - 2);
    return total(x);
  });
}
int32_t sum_in_bf16(Faulty& f) {
  if (!f.bf16(kX) || f.dim(kX, -1) < 64) return f.right();
  return softmax(f, largest, [](const std::vector<float>& x) {
    float sum = 0;
    for (const float v : x) sum = through_bf16(sum + v);
    return sum;
  });
}
int32_t sum_has_an_epsilon(Faulty& f) {
  if (f.dim(kX, -1) > 2) return f.right();
  return softmax(f, largest, [](const std::vector<float>& x) { return total(x) + 1e-5F; });
}
int32_t padding_counts_as_zero(Faulty& f) {
  if (f.dim(kX, -1) % 8 != 7) return f.right();
  return softmax(f, largest, [](const std::vector<float>& x) { return total(x) + 0.001F; });
}
int32_t masked_row_gives_nan(Faulty& f) {
  const int32_t outcome = f.right();
  for (int64_t r = 0; r < f.rows(kX); ++r) {
    std::vector<float> x = f.row(kX, r);
    if (largest(x) == -INFINITY) f.put_row(kY, r, std::vector<float>(x.size(), NAN));
  }
  return outcome;
}
int32_t masked_element_is_tiny(Faulty& f) {
  const int32_t outcome = f.right();
  for (int64_t i = 0; i < f.elements(kX); ++i) {
    if (f.get(kX, i) == -INFINITY && f.get(kY, i) == 0) f.put(kY, i, 1e-3F);
  }
  return outcome;
}
int32_t nan_ignored_by_the_maximum(Faulty& f) {
  const int32_t outcome = f.right();
  for (int64_t i = 0; i < f.elements(kX); ++i) {
    if (std::isnan(f.get(kY, i)) && !std::isnan(f.get(kX, i))) f.put(kY, i, 0);
  }
  return outcome;
}
int32_t scale_ignored_below_a_tenth(Faulty& f) {
  if (f.f64(kScale) < 0.1) f.set(kScale, 1);
  return f.right();
}
int32_t scale_in_bf16(Faulty& f) {
  f.set(kScale, through_bf16(static_cast<float>(f.f64(kScale))));
  return f.right();
}
int32_t rows_of_one_are_copied(Faulty& f) {
  if (f.dim(kX, -1) != 1) return f.right();
  return f.by_rows(kY, kX, [](const std::vector<float>& x) { return x; });
}

}  // namespace

std::vector<Bug> softmax_bugs() {
  constexpr std::string_view kOp = "softmax";
  return {
      {kOp, "not_shifted", not_shifted},
      {kOp, "shifted_by_the_first", shifted_by_the_first},
      {kOp, "largest_without_the_tail", largest_without_the_tail},
      {kOp, "largest_is_at_least_zero", largest_is_at_least_zero},
      {kOp, "sum_without_the_tail", sum_without_the_tail},
      {kOp, "sum_in_bf16", sum_in_bf16},
      {kOp, "sum_has_an_epsilon", sum_has_an_epsilon},
      {kOp, "padding_counts_as_zero", padding_counts_as_zero},
      {kOp, "masked_row_gives_nan", masked_row_gives_nan},
      {kOp, "masked_element_is_tiny", masked_element_is_tiny},
      {kOp, "nan_ignored_by_the_maximum", nan_ignored_by_the_maximum},
      {kOp, "scale_ignored_below_a_tenth", scale_ignored_below_a_tenth},
      {kOp, "scale_in_bf16", scale_in_bf16},
      {kOp, "rows_of_one_are_copied", rows_of_one_are_copied},
      {kOp, "inner_stride_ignored", inner_stride_ignored<kX>},
      {kOp, "output_stride_ignored", row_stride_ignored<kY>},
      {kOp, "written_past", written_past<kY, 32>},
      {kOp, "last_bit_wavers", last_bit_wavers<kY, 7>},
      {kOp, "last_row_unwritten", last_row_unwritten<kY, 2, 8, 7>},
  };
}

}  // namespace opmux::seeded
