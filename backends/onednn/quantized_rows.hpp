// Quantizes rows of floats to 8-bit integers and scales the integer sums back. The compiler
// vectorizes these loops with AVX-512, which the implementation requires as a capability.
#pragma once

#include <cstdint>

#include "backends/common/element.hpp"

namespace opmux::backends::onednn {

inline constexpr const char* kVectorFeatures = "avx512f,avx512bw,avx512dq,avx512vl,avx512_vnni";

// Quantizes one row as backends/common/quantize.hpp defines it and returns its scale, which is
// *given if `given` is not null. A row that contains a NaN gets the scale NaN.
template <class T>
float quantize_row(const T* row, int64_t count, const float* given, int8_t* to);

// to[n] = sums[n] * (row_scale * scales[n]) + bias[n]; bias may be null.
template <class T>
void scale_row(const int32_t* sums, int64_t count, float row_scale, const float* scales,
               const float* bias, T* to);

// Converts `count` elements of any float type to f32.
void widen(const void* from, opmux_dtype dtype, int64_t count, float* to);

}  // namespace opmux::backends::onednn
