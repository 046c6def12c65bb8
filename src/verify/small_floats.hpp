#pragma once

#include <cstdint>

#include <opmux/tensor.hpp>

namespace opmux::verify {

/// A float type of 8 bits: sign, exponent, fraction.
struct SmallFloat {
  DType dtype;
  int fraction_bits;
  int bias;            ///< of the exponent
  double largest;      ///< largest finite number
  bool infinities;     ///< without them, results that are too large become the largest number
  bool negative_zero;  ///< without it, the bits of negative zero mean NaN
};

/// The description of a float type of 8 bits; null for other types.
const SmallFloat* small_float(DType dtype);

/// The number that these bits mean.
double decoded(const SmallFloat& type, uint8_t bits);
/// The bits of a number that the type can represent.
uint8_t encoded(const SmallFloat& type, double value);

/// The number of a float of 4 bits (e2m1fn), given in the low bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 or
/// the same with a minus sign.
double decoded_e2m1(int bits);

}  // namespace opmux::verify
