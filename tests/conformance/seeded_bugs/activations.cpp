#include <algorithm>
#include <cmath>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

constexpr size_t kY = 0, kX = 1, kApproximate = 2;

/// y = map(gate, factor), element by element.
template <class Map>
int32_t gated(Faulty& f, Map map) {
  return f.by_rows(kY, kX, [&](const std::vector<float>& x) {
    const size_t half = x.size() / 2;
    std::vector<float> y(half);
    for (size_t i = 0; i < half; ++i) y[i] = map(x[i], x[half + i]);
    return y;
  });
}
float silu(float v) { return v / (1 + std::exp(-v)); }
float gelu(float v) { return 0.5F * v * std::erfc(-v * 0.70710678118654752F); }

int32_t second_half_is_the_gate(Faulty& f) {
  if (f.dim(kY, -1) % 32 != 0) return f.right();
  return gated(f, [](float a, float b) { return silu(b) * a; });
}
int32_t halves_interleaved(Faulty& f) {
  if (f.dim(kY, -1) != 2) return f.right();
  return f.by_rows(kY, kX, [](const std::vector<float>& x) {
    return std::vector<float>{silu(x[0]) * x[1], silu(x[2]) * x[3]};
  });
}
int32_t exponential_clamped(Faulty& f) {
  return gated(f, [](float a, float b) { return a / (1 + std::exp(std::min(-a, 20.0F))) * b; });
}
int32_t sigmoid_in_bf16(Faulty& f) {
  if (!f.bf16(kX)) return f.right();
  return gated(f, [](float a, float b) { return a * through_bf16(1 / (1 + std::exp(-a))) * b; });
}
int32_t gate_rounded_before_the_product(Faulty& f) {
  if (!f.f16(kX)) return f.right();
  return gated(f, [](float a, float b) { return through_f16(silu(a)) * b; });
}
int32_t nan_in_the_factor_lost(Faulty& f) {
  return gated(f, [](float a, float b) { return std::isnan(b) ? 0 : silu(a) * b; });
}
int32_t hard_sigmoid_far_out(Faulty& f) {
  return gated(f, [](float a, float b) { return (a > 12 ? a : silu(a)) * b; });
}
int32_t half_of_a_rounded_width(Faulty& f) {
  const int64_t width = f.dim(kY, -1);
  if (width % 16 != 15) return f.right();
  return f.by_rows(kY, kX, [](const std::vector<float>& x) {
    const size_t half = x.size() / 2;
    std::vector<float> y(half);
    for (size_t i = 0; i < half; ++i) y[i] = silu(x[i]) * x[std::min(half + 1 + i, x.size() - 1)];
    return y;
  });
}
int32_t wide_rows_wrap_at_2048(Faulty& f) {
  if (f.dim(kY, -1) <= 2048) return f.right();
  return f.by_rows(kY, kX, [](const std::vector<float>& x) {
    const size_t half = x.size() / 2;
    std::vector<float> y(half);
    for (size_t i = 0; i < half; ++i) y[i] = silu(x[i]) * x[half + i % 2048];
    return y;
  });
}

int32_t tanh_always(Faulty& f) {
  f.i64(kApproximate) = 1;
  return f.right();
}
int32_t erf_for_bf16(Faulty& f) {
  if (f.bf16(kX)) f.i64(kApproximate) = 0;
  return f.right();
}
int32_t silu_for_large(Faulty& f) {
  if (f.i64(kApproximate) != 0) return f.right();
  return gated(f,
               [](float a, float b) { return (std::abs(a) > 8 ? silu(1.702F * a) : gelu(a)) * b; });
}
int32_t sigmoid_approximation(Faulty& f) {
  if (f.i64(kApproximate) != 1 || f.dim(kX, -1) > 64) return f.right();
  return gated(f, [](float a, float b) { return a / (1 + std::exp(-1.702F * a)) * b; });
}
int32_t cubic_term_forgotten(Faulty& f) {
  if (f.i64(kApproximate) != 1 || f.dim(kX, -1) % 4 != 2) return f.right();
  return gated(f,
               [](float a, float b) { return 0.5F * a * (1 + std::tanh(0.7978845608F * a)) * b; });
}

}  // namespace

std::vector<Bug> activation_bugs() {
  constexpr std::string_view kSilu = "silu_and_mul", kGelu = "gelu_and_mul";
  return {
      {kSilu, "second_half_is_the_gate", second_half_is_the_gate},
      {kSilu, "halves_interleaved", halves_interleaved},
      {kSilu, "exponential_clamped", exponential_clamped},
      {kSilu, "sigmoid_in_bf16", sigmoid_in_bf16},
      {kSilu, "gate_rounded_before_the_product", gate_rounded_before_the_product},
      {kSilu, "nan_in_the_factor_lost", nan_in_the_factor_lost},
      {kSilu, "linear_far_out", hard_sigmoid_far_out},
      {kSilu, "half_of_a_rounded_width", half_of_a_rounded_width},
      {kSilu, "wide_rows_wrap_at_2048", wide_rows_wrap_at_2048},
      {kSilu, "tail_unwritten", tail_unwritten<kY, 8, 1>},
      {kSilu, "row_stride_ignored", row_stride_ignored<kX>},
      {kSilu, "leading_collapsed", leading_collapsed<kY>},
      {kSilu, "read_past_14_of_16", read_past<kX, 16, 14>},
      {kSilu, "written_past_7_of_8", written_past<kY, 8>},
      {kSilu, "batch_changes_bits", batch_changes_bits<kY, 16>},
      {kGelu, "tanh_always", tanh_always},
      {kGelu, "erf_for_bf16", erf_for_bf16},
      {kGelu, "silu_for_large", silu_for_large},
      {kGelu, "sigmoid_approximation", sigmoid_approximation},
      {kGelu, "cubic_term_forgotten", cubic_term_forgotten},
      {kGelu, "tail_unwritten", tail_unwritten<kY, 16, 13>},
      {kGelu, "input_changed", input_changed<kX, 5>},
      {kGelu, "output_added_to", output_added_to<kY, 8>},
      {kGelu, "bf16_truncated", bf16_truncated<kY>},
      {kGelu, "aligned_down", aligned_down<kX>},
      {kGelu, "threads_share_a_counter", threads_share_a_counter<kY, 16>},
  };
}

}  // namespace opmux::seeded
