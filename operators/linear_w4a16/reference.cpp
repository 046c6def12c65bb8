#include <algorithm>

#include "backends/common/nibbles.hpp"
#include "backends/common/panel.hpp"
#include "backends/common/rows.hpp"
#include "backends/common/small_floats.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Dequantizes the weight to f32: (4-bit number - zero point) * scale, with the zero point and scale
// of the group that contains k. The numbers are integers or floats (e2m1fn).
class Weight4 {
 public:
  explicit Weight4(const plugin::Call& call)
      : weight_(call.tensor(2)),
        scale_(call.tensor(3)),
        zero_point_(call.optional_tensor(4)),
        floats_(weight_.is(plugin::f4_e2m1fn_x2)),
        small_scale_(float8_of(scale_.dtype())),
        group_(2 * weight_.dim(1) / std::max<int64_t>(1, scale_.dim(1))) {}

  float at(int64_t n, int64_t k) const {
    const uint8_t* packed = weight_.data<const uint8_t>() + n * weight_.stride(0);
    const int bits = nibble(packed, weight_.stride(1), k);
    const int64_t g = k / group_;
    return ((floats_ ? float4(bits) : float(bits)) - zero_point(n, g)) * scale(n, g);
  }

 private:
  float scale(int64_t n, int64_t g) const {
    const int64_t offset = n * scale_.stride(0) + g * scale_.stride(1);
    return small_scale_ != nullptr ? to_float(*small_scale_, scale_.data<const uint8_t>()[offset])
                                   : element_at(scale_.c(), offset);
  }
  float zero_point(int64_t n, int64_t g) const {
    if (!zero_point_) return floats_ ? 0 : 8;
    const int64_t offset = n * zero_point_.stride(0) + g * zero_point_.stride(1);
    return zero_point_.is(plugin::u8) ? float(zero_point_.data<const uint8_t>()[offset])
                                      : element_at(zero_point_.c(), offset);
  }

  plugin::TensorArg weight_, scale_, zero_point_;
  bool floats_;
  const Float8* small_scale_;  // null: the scale is f32, f16 or bf16
  int64_t group_;
};

void run_linear_w4a16(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const int64_t depth = x.dim(-1), width = y.dim(-1), count = Rows(y.c()).count();
  const std::vector<float> rows = load_rows(x);
  const Weight4 weight(call);
  std::vector<float> products(static_cast<size_t>(count * width));
  Panel panel(depth);
  float sums[kPanelWidth];
  for (int64_t n = 0; n < width; n += kPanelWidth) {
    const int64_t columns = std::min(kPanelWidth, width - n);
    panel.fill(depth, columns, [&](int64_t k, int64_t c) { return weight.at(n + c, k); });
    for (int64_t r = 0; r < count; ++r) {
      panel.weighted_sum(rows.data() + r * depth, 0, depth, sums);
      std::copy_n(sums, columns, products.data() + r * width + n);
    }
  }
  add_bias_and_store(y, products, call.optional_tensor(5));
}

}  // namespace

plugin::Impl linear_w4a16() {
  constexpr std::string_view kSignature =
      "linear_w4a16(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, KP], "
      "const Tensor scale[N, G], const Tensor? zero_point[N, G], Tensor? bias[N]) "
      "where K == 2 * KP && K % G == 0";
  plugin::Caps caps;
  caps.dtypes("weight", {plugin::u8, plugin::f4_e2m1fn_x2})
      .dtypes("scale", {plugin::f32, plugin::f16, plugin::bf16, plugin::f8_e4m3fn})
      .dtypes("zero_point", {plugin::u8, plugin::f32, plugin::f16, plugin::bf16});
  return scalar("linear_w4a16", kSignature, caps).run(run_linear_w4a16);
}

}  // namespace opmux::backends::reference
