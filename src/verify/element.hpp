#pragma once

#include <cstddef>

#include <opmux/tensor.hpp>

namespace opmux::verify {

/// True for f32, f16 and bf16.
bool is_float(DType dtype);
/// True if results of this type can be compared: f32, f16, bf16, bool and integers.
bool comparable(DType dtype);
/// The largest relative error of rounding to a float type; 0 for other types.
double unit_roundoff(DType dtype);
/// The smallest positive number of the type; 1 for integers.
double smallest(DType dtype);
/// Half the distance between neighbouring numbers around `value`, the largest rounding error there.
double half_step(double value, DType dtype);

/// Rounds to nearest even, with overflow to infinity. Clamps integers.
double rounded(double value, DType dtype);

/// Reads or writes one element. A written value must be representable in the type; see rounded().
double read_element(const std::byte* at, DType dtype);
void write_element(std::byte* at, DType dtype, double value);

}  // namespace opmux::verify
