#include "backends/onednn/quantized_rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#define OPMUX_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace opmux::backends::onednn {
namespace {

constexpr uint32_t kInfinity = 0x7f800000u;

// Bits of the largest magnitude in a row; greater than the bits of infinity if the row contains a
// NaN. Compares integers because a maximum of floats may drop a NaN.
template <class T>
OPMUX_AVX512 uint32_t largest_bits(const T* row, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(to_float(row[i])) & 0x7fffffffu);
  }
  return largest;
}

template <class T>
OPMUX_AVX512 void quantize_all(const T* row, int64_t count, float scale, int8_t* to) {
  constexpr float kRounds = 0x1.8p23f;  // Adding it rounds to an integer.
  for (int64_t i = 0; i < count; ++i) {
    float quotient = to_float(row[i]) / scale;
    quotient = quotient != quotient ? 0.0f : quotient;
    quotient = quotient < -128.0f ? -128.0f : quotient;
    quotient = quotient > 127.0f ? 127.0f : quotient;
    to[i] = static_cast<int8_t>(static_cast<int32_t>((quotient + kRounds) - kRounds));
  }
}

template <bool kBias, class T>
OPMUX_AVX512 void scale_all(const int32_t* sums, int64_t count, float row_scale,
                            const float* scales, const float* bias, T* to) {
  for (int64_t i = 0; i < count; ++i) {
    float value = static_cast<float>(sums[i]) * (row_scale * scales[i]);
    if (kBias) value += bias[i];
    to[i] = from_float<T>(value);
  }
}

}  // namespace

template <class T>
float quantize_row(const T* row, int64_t count, const float* given, int8_t* to) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const uint32_t largest = largest_bits(row, count);
  float scale = largest < kInfinity ? std::bit_cast<float>(largest) / 127 : kNan;
  if (given != nullptr) scale = *given;
  quantize_all(row, count, scale, to);
  return largest > kInfinity ? kNan : scale;
}

template <class T>
void scale_row(const int32_t* sums, int64_t count, float row_scale, const float* scales,
               const float* bias, T* to) {
  if (bias == nullptr) {
    scale_all<false>(sums, count, row_scale, scales, bias, to);
  } else {
    scale_all<true>(sums, count, row_scale, scales, bias, to);
  }
}

void widen(const void* from, opmux_dtype dtype, int64_t count, float* to) {
  with_element(dtype, [&]<class T>(Tag<T>) {
    for (int64_t i = 0; i < count; ++i) to[i] = to_float(static_cast<const T*>(from)[i]);
  });
}

template float quantize_row<float>(const float*, int64_t, const float*, int8_t*);
template float quantize_row<F16>(const F16*, int64_t, const float*, int8_t*);
template float quantize_row<BF16>(const BF16*, int64_t, const float*, int8_t*);
template void scale_row<float>(const int32_t*, int64_t, float, const float*, const float*, float*);
template void scale_row<F16>(const int32_t*, int64_t, float, const float*, const float*, F16*);
template void scale_row<BF16>(const int32_t*, int64_t, float, const float*, const float*, BF16*);

}  // namespace opmux::backends::onednn
