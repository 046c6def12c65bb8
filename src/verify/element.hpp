#pragma once

#include <cstddef>

#include <opmux/tensor.hpp>

namespace opmux::verify {

/// f32, f16 or bf16.
bool is_float(DType dtype);
/// Whether results of this type can be judged: the float types above, bool and whole numbers.
bool comparable(DType dtype);
/// The largest relative error of rounding to a float type; 0 for the others.
double unit_roundoff(DType dtype);
/// Its smallest positive number; 1 for integers.
double smallest(DType dtype);
/// Half the distance of its neighbours around `value`: what rounding may lose there.
double half_step(double value, DType dtype);

/// To nearest even, with overflow to infinity; integers are clamped.
double rounded(double value, DType dtype);

/// One element. What is written must be representable; see rounded().
double read_element(const std::byte* at, DType dtype);
void write_element(std::byte* at, DType dtype, double value);

}  // namespace opmux::verify
