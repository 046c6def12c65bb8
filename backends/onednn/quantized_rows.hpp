// Rows of floats to 8-bit integers, and sums of their products back: loops that the compiler turns
// into vectors of AVX-512, which the implementation asks for as a capability.
#pragma once

#include <cstdint>

#include "backends/common/element.hpp"

namespace opmux::backends::onednn {

inline constexpr const char* kVectorFeatures = "avx512f,avx512bw,avx512dq,avx512vl,avx512_vnni";

// What backends/common/quantize.hpp defines, for one row: returns its scale, `given` if not null. A
// row that has a NaN gets the scale NaN.
template <class T>
float quantize_row(const T* row, int64_t count, const float* given, int8_t* to);

// to[n] = sums[n] * (row_scale * scales[n]) + bias[n]; bias may be null.
template <class T>
void scale_row(const int32_t* sums, int64_t count, float row_scale, const float* scales,
               const float* bias, T* to);

// The first `count` elements of any float type as f32.
void widen(const void* from, opmux_dtype dtype, int64_t count, float* to);

}  // namespace opmux::backends::onednn
