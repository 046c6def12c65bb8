#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "backends/common/quantize.hpp"
#include "backends/common/rows.hpp"
#include "backends/common/small_floats.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Dense rows of 8-bit integers, each with its scale.
struct QuantizedRows {
  std::vector<int8_t> values;
  std::vector<float> scales;
};

void copy_bytes(const plugin::TensorArg& x, int64_t offset, int8_t* to) {
  const int8_t* from = x.data<const int8_t>() + offset;
  for (int64_t i = 0; i < x.dim(-1); ++i) to[i] = from[i * x.stride(-1)];
}

// A row that contains a NaN gets the scale NaN, because 8-bit integers cannot represent it.
void quantize_row(const std::vector<float>& row, const plugin::TensorArg& x_scale, float& scale,
                  int8_t* to) {
  const int64_t size = int64_t(row.size());
  if (!x_scale) scale = row_scale(row.data(), size);
  const bool lost = std::any_of(row.begin(), row.end(), [](float v) { return std::isnan(v); });
  for (int64_t i = 0; i < size; ++i) to[i] = quantize(row[size_t(i)], scale);
  if (lost) scale = std::numeric_limits<float>::quiet_NaN();
}

QuantizedRows quantized_rows(const plugin::TensorArg& x, const plugin::TensorArg& x_scale) {
  const Rows rows(x.c()), scales(x_scale ? x_scale.c() : x.c(), x_scale ? 0 : 1);
  const int64_t size = x.dim(-1);
  QuantizedRows result{std::vector<int8_t>(size_t(rows.count() * size)),
                       std::vector<float>(size_t(rows.count()))};
  std::vector<float> row(static_cast<size_t>(size));
  for (int64_t r = 0; r < rows.count(); ++r) {
    float& scale = result.scales[size_t(r)];
    int8_t* to = result.values.data() + r * size;
    if (x_scale) scale = element_at(x_scale.c(), scales.offset(r));
    if (x.is(plugin::i8)) {
      copy_bytes(x, rows.offset(r), to);
    } else {
      load_row(x.c(), rows.offset(r), size, row.data());
      quantize_row(row, x_scale, scale, to);
    }
  }
  return result;
}

// Exact in int32: fewer than 2^17 products of at most 2^14 each. Fixed-size blocks let compilers
// vectorize.
int32_t dot(const int8_t* a, const int8_t* b, int64_t count) {
  constexpr int64_t kBlock = 64;
  int32_t sum = 0;
  for (; count >= kBlock; count -= kBlock, a += kBlock, b += kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) sum += int32_t{a[i]} * int32_t{b[i]};
  }
  for (int64_t i = 0; i < count; ++i) sum += int32_t{a[i]} * int32_t{b[i]};
  return sum;
}

void load_floats(const Float8& type, const plugin::TensorArg& from, int64_t offset, float* to) {
  const uint8_t* bits = from.data<const uint8_t>() + offset;
  for (int64_t i = 0; i < from.dim(-1); ++i) to[i] = to_float(type, bits[i * from.stride(-1)]);
}

// Rows of x as numbers of 8 bits, each with its scale: as they are, or quantized to `type`, the
// type of the weight.
struct FloatRows {
  std::vector<float> values, scales;

  FloatRows(const plugin::TensorArg& x, const plugin::TensorArg& x_scale, const Float8& type) {
    const Rows rows(x.c()), given(x_scale ? x_scale.c() : x.c(), x_scale ? 0 : 1);
    const Float8* const own = float8_of(x.dtype());
    const int64_t size = x.dim(-1);
    values.resize(size_t(rows.count() * size));
    for (int64_t r = 0; r < rows.count(); ++r) {
      float* const row = values.data() + r * size;
      if (own != nullptr) {
        load_floats(*own, x, rows.offset(r), row);
      } else {
        load_row(x.c(), rows.offset(r), size, row);
      }
      const float scale =
          x_scale ? element_at(x_scale.c(), given.offset(r)) : row_scale(row, size, type.largest);
      for (int64_t i = 0; own == nullptr && i < size; ++i) row[i] = quantize(type, row[i], scale);
      scales.push_back(scale);
    }
  }
};

int32_t multiply_floats(const plugin::Call& call, const Float8& type) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2);
  const int64_t depth = weight.dim(1), width = weight.dim(0);
  const FloatRows rows(x, call.optional_tensor(4), type);
  const std::vector<float> scale = load_vector(call.tensor(3), width, 1);
  std::vector<float> products(rows.scales.size() * size_t(width));
  std::vector<float> column(static_cast<size_t>(depth));
  for (int64_t n = 0; n < width; ++n) {
    load_floats(type, weight, n * weight.stride(0), column.data());
    for (size_t r = 0; r < rows.scales.size(); ++r) {
      const float* const row = rows.values.data() + int64_t(r) * depth;
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += double(row[k]) * double(column[size_t(k)]);
      products[r * size_t(width) + size_t(n)] = float(sum) * (rows.scales[r] * scale[size_t(n)]);
    }
  }
  add_bias_and_store(y, products, call.optional_tensor(5));
  return OPMUX_OK;
}

int32_t run_linear_w8a8(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2),
                          x_scale = call.optional_tensor(4);
  const Float8* const floats = float8_of(weight.dtype());
  const bool float_rows = float8_of(x.dtype()) != nullptr, integer_rows = x.is(plugin::i8);
  if ((integer_rows || float_rows) && !x_scale) {
    return plugin::invalid(call.error(), "w8a8.x_scale", "x has 8 bits and needs x_scale");
  }
  if (floats != nullptr ? integer_rows : float_rows) {
    return plugin::invalid(call.error(), "w8a8.dtypes",
                           "one of x and weight is i8 and the other is a float of 8 bits");
  }
  if (floats != nullptr) return multiply_floats(call, *floats);
  const int64_t depth = weight.dim(1), width = weight.dim(0);
  const QuantizedRows rows = quantized_rows(x, x_scale);
  const std::vector<float> scale = load_vector(call.tensor(3), width, 1);
  std::vector<float> products(rows.scales.size() * size_t(width));
  std::vector<int8_t> column(static_cast<size_t>(depth));
  for (int64_t n = 0; n < width; ++n) {
    copy_bytes(weight, n * weight.stride(0), column.data());
    for (size_t r = 0; r < rows.scales.size(); ++r) {
      const int32_t sum = dot(rows.values.data() + int64_t(r) * depth, column.data(), depth);
      products[r * size_t(width) + size_t(n)] = float(sum) * (rows.scales[r] * scale[size_t(n)]);
    }
  }
  add_bias_and_store(y, products, call.optional_tensor(5));
  return OPMUX_OK;
}

}  // namespace

plugin::Impl linear_w8a8() {
  constexpr std::string_view kSignature =
      "linear_w8a8(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], "
      "const Tensor weight_scale[N], Tensor? x_scale[...], Tensor? bias[N]) where K < 131072";
  plugin::Caps caps;
  caps.dtypes("x", {plugin::i8, plugin::f32, plugin::f16, plugin::bf16, plugin::f8_e4m3fn,
                    plugin::f8_e4m3fnuz, plugin::f8_e5m2, plugin::f8_e5m2fnuz})
      .dtypes("weight", {plugin::i8, plugin::f8_e4m3fn, plugin::f8_e4m3fnuz, plugin::f8_e5m2,
                         plugin::f8_e5m2fnuz});
  return scalar("linear_w8a8", kSignature, caps).run(run_linear_w8a8);
}

}  // namespace opmux::backends::reference
