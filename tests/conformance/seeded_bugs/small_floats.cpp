#include <algorithm>
#include <cmath>

#include "backends/common/nibbles.hpp"
#include "backends/common/quantize.hpp"
#include "backends/common/small_floats.hpp"
#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

constexpr size_t kY = 0, kX = 1, kWeight = 2, kWeightScale = 3, kXScale = 4, kZero = 4, kBias = 5;
constexpr uint8_t kE4m3fn = OPMUX_DTYPE_FLOAT8_E4M3FN, kE4m3fnuz = OPMUX_DTYPE_FLOAT8_E4M3FNUZ,
                  kE5m2 = OPMUX_DTYPE_FLOAT8_E5M2, kE5m2fnuz = OPMUX_DTYPE_FLOAT8_E5M2FNUZ,
                  kE2m1 = OPMUX_DTYPE_FLOAT4_E2M1FN;

bool has_code(Faulty& f, size_t i, uint8_t code) {
  return f.has(i) && f.tensor(i).dtype.code == code;
}

/// Reads an element of any float type.
float number(Faulty& f, size_t i, int64_t element) {
  const backends::Float8* const small = backends::float8_of(f.tensor(i).dtype);
  if (small == nullptr) return f.get(i, element);
  return to_float(*small,
                  backends::first_element<const uint8_t>(f.tensor(i))[f.offset(i, element)]);
}

/// Reads a type of 8 bits as another one.
template <size_t I, uint8_t From, uint8_t To>
int32_t read_as(Faulty& f) {
  if (has_code(f, I, From)) f.tensor(I).dtype.code = To;
  return f.right();
}

// linear_w8a8

/// y[n] = (sum of x[k] * weight[n, k]) * scale * weight_scale[n] + bias[n] in f32.
template <class Row>
int32_t multiply(Faulty& f, Row&& row_of) {
  const int64_t depth = f.dim(kWeight, 1), width = f.dim(kWeight, 0);
  std::vector<float> row(static_cast<size_t>(depth));
  for (int64_t e = 0; e < f.elements(kY); ++e) {
    const float scale = row_of(e / width, row);
    float sum = 0;
    for (int64_t k = depth; k-- > 0;) {
      sum += row[static_cast<size_t>(k)] * number(f, kWeight, e % width * depth + k);
    }
    float y = sum * (scale * f.get(kWeightScale, e % width));
    if (f.has(kBias)) y += f.get(kBias, e % width);
    f.put(kY, e, y);
  }
  return OPMUX_OK;
}

int32_t subnormal_weights_flushed(Faulty& f) {
  if (!has_code(f, kWeight, kE4m3fn)) return f.right();
  return f.with_bytes(kWeight,
                      [](int byte, int64_t) { return (byte & 0x78) == 0 ? byte & 0x80 : byte; });
}
int32_t x_not_quantized(Faulty& f) {
  const bool small = backends::float8_of(f.tensor(kWeight).dtype) != nullptr;
  if (!small || f.tensor(kX).dtype.bits == 8) return f.right();
  return multiply(f, [&](int64_t r, std::vector<float>& row) {
    row = f.row(kX, r);
    return 1.0f;
  });
}
int32_t scaled_to_127(Faulty& f) {
  const backends::Float8* const type = backends::float8_of(f.tensor(kWeight).dtype);
  if (type == nullptr || f.tensor(kX).dtype.bits == 8 || f.has(kXScale)) return f.right();
  return multiply(f, [&](int64_t r, std::vector<float>& row) {
    row = f.row(kX, r);
    const float scale = backends::row_scale(row.data(), static_cast<int64_t>(row.size()));
    for (float& value : row) value = backends::quantize(*type, value, scale);
    return scale;
  });
}
int32_t first_x_scale_for_all(Faulty& f) {
  const bool small = f.has(kXScale) && backends::float8_of(f.tensor(kX).dtype) != nullptr;
  if (!small || f.elements(kXScale) < 2) return f.right();
  return f.with_floats(kXScale, [&](float, int64_t) { return f.get(kXScale, 0); });
}

// linear_w4a16

int32_t halves_swapped(Faulty& f) {
  if (!has_code(f, kWeight, kE2m1)) return f.right();
  return f.with_bytes(kWeight, [](int byte, int64_t) { return byte >> 4 | (byte & 15) << 4; });
}
int32_t sign_lost(Faulty& f) {
  if (!has_code(f, kWeight, kE2m1)) return f.right();
  return f.with_bytes(kWeight, [](int byte, int64_t) { return byte & 0x77; });
}
int32_t halves_read_as_zero(Faulty& f) {
  if (!has_code(f, kWeight, kE2m1)) return f.right();
  const auto without = [](int bits) { return (bits & 7) == 1 ? bits & 8 : bits; };
  return f.with_bytes(
      kWeight, [&](int byte, int64_t) { return without(byte & 15) | without(byte >> 4) << 4; });
}
int32_t read_as_integers(Faulty& f) {
  if (has_code(f, kWeight, kE2m1)) f.tensor(kWeight).dtype = {OPMUX_DTYPE_UINT, 8, 1};
  return f.right();
}
int32_t last_number_of_odd_rows_dropped(Faulty& f) {
  const int64_t bytes = f.dim(kWeight, 1);
  if (!has_code(f, kWeight, kE2m1) || bytes % 8 != 7) return f.right();
  return f.with_bytes(
      kWeight, [=](int byte, int64_t e) { return e % bytes == bytes - 1 ? byte & 15 : byte; });
}
int32_t zero_points_of_floats_ignored(Faulty& f) {
  if (has_code(f, kWeight, kE2m1)) f.drop(kZero);
  return f.right();
}

}  // namespace

int32_t small_floats_in_f32(Faulty& f) {
  if (f.tensor(kWeight).dtype.code == kE2m1) {
    const int64_t depth = f.dim(kX, -1), width = f.dim(kWeight, 0), groups = f.dim(3, 1);
    for (int64_t e = 0; e < f.elements(kY); ++e) {
      const int64_t n = e % width;
      float sum = 0;
      for (int64_t k = depth; k-- > 0;) {
        const auto* const byte = backends::first_element<const uint8_t>(f.tensor(kWeight)) +
                                 f.offset(kWeight, (n * depth + k) / 2);
        const int64_t group = n * groups + k / (depth / groups);
        float zero = 0;
        if (f.has(kZero)) {
          const bool bytes = f.tensor(kZero).dtype.bits == 8;
          zero =
              bytes
                  ? backends::first_element<const uint8_t>(f.tensor(kZero))[f.offset(kZero, group)]
                  : f.get(kZero, group);
        }
        const float weight = backends::float4(backends::nibble(byte, 1, k % 2)) - zero;
        sum += f.get(kX, e / width * depth + k) * (weight * number(f, 3, group));
      }
      f.put(kY, e, f.has(kBias) ? sum + f.get(kBias, n) : sum);
    }
    return OPMUX_OK;
  }
  const backends::Float8* const type = backends::float8_of(f.tensor(kWeight).dtype);
  const bool own = backends::float8_of(f.tensor(kX).dtype) != nullptr;
  if (type == nullptr || f.tensor(kWeight).dtype.bits != 8 || (own && !f.has(kXScale))) {
    return f.right();
  }
  const int64_t depth = f.dim(kWeight, 1);
  return multiply(f, [&](int64_t r, std::vector<float>& row) {
    for (int64_t k = 0; k < depth; ++k) row[static_cast<size_t>(k)] = number(f, kX, r * depth + k);
    const float scale =
        f.has(kXScale) ? f.get(kXScale, r) : backends::row_scale(row.data(), depth, type->largest);
    for (float& value : row) value = own ? value : backends::quantize(*type, value, scale);
    return scale;
  });
}

std::vector<Bug> small_float_bugs() {
  constexpr std::string_view kW8 = "linear_w8a8", kW4 = "linear_w4a16";
  return {
      {kW8, "weight_fnuz_read_as_fn", read_as<kWeight, kE4m3fnuz, kE4m3fn>},
      {kW8, "weight_e5m2_read_as_e4m3", read_as<kWeight, kE5m2, kE4m3fn>},
      {kW8, "weight_e5m2fnuz_read_as_e5m2", read_as<kWeight, kE5m2fnuz, kE5m2>},
      {kW8, "x_fnuz_read_as_fn", read_as<kX, kE4m3fnuz, kE4m3fn>},
      {kW8, "subnormal_weights_flushed", subnormal_weights_flushed},
      {kW8, "x_not_quantized", x_not_quantized},
      {kW8, "scaled_to_127", scaled_to_127},
      {kW8, "first_x_scale_for_all", first_x_scale_for_all},
      {kW4, "halves_swapped", halves_swapped},
      {kW4, "sign_lost", sign_lost},
      {kW4, "halves_read_as_zero", halves_read_as_zero},
      {kW4, "read_as_integers", read_as_integers},
      {kW4, "last_number_of_odd_rows_dropped", last_number_of_odd_rows_dropped},
      {kW4, "zero_points_of_floats_ignored", zero_points_of_floats_ignored},
      {kW4, "scale_e4m3_read_as_e5m2", read_as<3, kE4m3fn, kE5m2>},
  };
}

}  // namespace opmux::seeded
