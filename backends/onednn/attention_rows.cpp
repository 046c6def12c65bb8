#include "backends/onednn/attention_rows.hpp"

#include <immintrin.h>

#include <cmath>
#include <cstring>

#define OPMUX_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define OPMUX_INLINE OPMUX_AVX512 __attribute__((always_inline)) inline

namespace opmux::backends::onednn {
namespace {

constexpr int64_t kLanes = kRowStep;
constexpr float kLog2E = 1.44269504f;
using Floats = float __attribute__((vector_size(64)));
using Bits = uint32_t __attribute__((vector_size(64)));

OPMUX_INLINE Floats load(const float* from) {
  Floats lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
OPMUX_INLINE void store(Floats lanes, float* to) { std::memcpy(to, &lanes, sizeof lanes); }
OPMUX_INLINE void store(Floats lanes, BF16* to) {
  const __m256bh halves = _mm512_cvtneps_pbh(lanes);
  std::memcpy(to, &halves, sizeof halves);
}

// 2^x for x up to a few tens. NaN stays NaN; results that would be subnormal are zero.
OPMUX_INLINE Floats power_of_two(Floats x) {
  constexpr float kRounds = 0x1.8p23f;  // Adding it rounds to an integer.
  const Floats shifted = x + kRounds, r = x - (shifted - kRounds);
  Floats series = r * 1.327647212e-03f + 9.675541328e-03f;
  series = series * r + 5.550713273e-02f;
  series = series * r + 2.402211972e-01f;
  series = series * r + 6.931469671e-01f;
  series = series * r + 1.000000072e+00f;
  const Floats power = reinterpret_cast<Floats>((reinterpret_cast<Bits>(shifted) + 127u) << 23);
  return x < -126.0f ? Floats{} : series * power;
}

// Uses the Cephes polynomial for small x, otherwise (1 - e^-2x) / (1 + e^-2x).
OPMUX_INLINE Floats tanh_of(Floats x) {
  const Floats size = x < 0.0f ? -x : x, square = x * x;
  Floats series = square * -5.70498872745e-3f + 2.06390887954e-2f;
  series = series * square - 5.37397155531e-2f;
  series = series * square + 1.33314422036e-1f;
  series = series * square - 3.33332819422e-1f;
  const Floats power = power_of_two(size * (-2 * kLog2E)), large = (1.0f - power) / (1.0f + power);
  return size < 0.625f ? series * square * x + x : x < 0.0f ? -large : large;
}

template <class Join>
OPMUX_INLINE float joined(Floats lanes, Join join) {
  float all[kLanes];
  store(lanes, all);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) all[i] = join(all[i], all[i + half]);
  }
  return all[0];
}

OPMUX_AVX512 float largest_of(const float* logits, int64_t count, float scale, float largest) {
  Floats lanes = Floats{} + largest;
  for (int64_t i = 0; i < count; i += kLanes) {
    const Floats scaled = load(logits + i) * scale;
    lanes = lanes > scaled ? lanes : scaled;
  }
  return joined(lanes, [](float a, float b) { return a > b ? a : b; });
}

template <class T>
OPMUX_AVX512 float weights_from(const float* logits, int64_t count, float scale, float shift,
                                T* weights) {
  Floats sum{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const Floats lanes = power_of_two(load(logits + i) * scale - shift);
    sum += lanes;
    store(lanes, weights + i);
  }
  return joined(sum, [](float a, float b) { return a + b; });
}

template <class T>
OPMUX_AVX512 void store_all(const float* sums, int64_t count, float factor, T* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(load(sums + i) * factor, to + i);
  for (; i < count; ++i) to[i] = from_float<T>(sums[i] * factor);
}

}  // namespace

OPMUX_AVX512 void cap_row(float* products, int64_t count, float scale, float softcap) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const Floats value = load(products + i) * scale;
    store(softcap > 0 ? tanh_of(value / softcap) * softcap : value, products + i);
  }
}

OPMUX_AVX512 void add_mask(float* logits, int64_t count, const float* added) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float sum = logits[i] + added[i];
    logits[i] = added[i] == kExcluded ? kExcluded : sum;
  }
}

template <class T>
void weigh_row(const float* logits, int64_t count, float scale, RunningRow& row, T* weights) {
  const float largest = largest_of(logits, count, scale, row.largest);
  row.factor = largest == row.largest ? 1 : std::exp(row.largest - largest);
  row.largest = largest;
  const float shift = largest == kExcluded ? 0 : largest * kLog2E;
  row.sum = row.sum * row.factor + weights_from(logits, count, scale * kLog2E, shift, weights);
}

OPMUX_AVX512 void add_part(float* sums, int64_t count, float factor, const float* part) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sums[i] = sums[i] * factor + part[i];
}

template <class T>
void store_scaled(const float* sums, int64_t count, float factor, T* to) {
  store_all(sums, count, factor, to);
}

template void weigh_row<float>(const float*, int64_t, float, RunningRow&, float*);
template void weigh_row<BF16>(const float*, int64_t, float, RunningRow&, BF16*);
template void store_scaled<float>(const float*, int64_t, float, float*);
template void store_scaled<BF16>(const float*, int64_t, float, BF16*);

}  // namespace opmux::backends::onednn
