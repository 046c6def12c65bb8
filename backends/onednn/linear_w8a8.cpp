#include <algorithm>

#include "backends/common/rows.hpp"
#include "backends/onednn/implementations.hpp"
#include "backends/onednn/packed_weight.hpp"
#include "backends/onednn/prepared.hpp"
#include "backends/onednn/quantized_rows.hpp"

namespace opmux::backends::onednn {
namespace {

using Desc = dnnl::memory::desc;

constexpr std::string_view kW8a8Signature =
    "linear_w8a8(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], "
    "const Tensor weight_scale[N], Tensor? x_scale[...], Tensor? bias[N]) where K < 131072";

// Rows multiplied at a time, so that their sums are still in the cache when they are scaled.
constexpr int64_t kBlockRows = 256;

std::shared_ptr<Prepared> w8a8_product(const plugin::Call& call, int64_t rows) {
  const plugin::TensorArg weight = call.tensor(2);
  const int64_t width = weight.dim(0), depth = weight.dim(1);
  const Desc x({rows, depth}, dnnl::memory::data_type::s8, {depth, 1}),
      y({rows, width}, dnnl::memory::data_type::s32, {width, 1});
  return with_weight(call, [&](const Desc& w) {
    const auto descriptor = described([&](const dnnl::primitive_attr& attributes) {
      return dnnl::matmul::primitive_desc(cpu(), x, w, y, attributes);
    });
    return std::make_shared<Prepared>(
        descriptor, dnnl::matmul(descriptor),
        std::initializer_list<Prepared::Argument>{
            {DNNL_ARG_DST, y}, {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}});
  });
}

// Prepared products for full blocks of rows and for the remaining rows.
struct W8a8Products {
  std::shared_ptr<Prepared> block, rest;

  const Prepared& of(int64_t rows) const { return rows == kBlockRows ? *block : *rest; }
  uint64_t workspace() const {
    return std::max(block ? block->workspace() : 0, rest ? rest->workspace() : 0);
  }
};

std::shared_ptr<void> plan_w8a8(const plugin::Call& call) {
  const ThreadLimit limit(call);
  const int64_t rows = rows_in(call.tensor(1));
  auto made = std::make_shared<W8a8Products>();
  if (rows >= kBlockRows) made->block = w8a8_product(call, kBlockRows);
  if (rows % kBlockRows != 0) made->rest = w8a8_product(call, rows % kBlockRows);
  return made;
}

// Layout of the workspace; every part is aligned to 64 bytes.
struct W8a8Room {
  uint64_t values = 0, sums, scales, bias, scratchpad, size;

  explicit W8a8Room(const plugin::Call& call) {
    const plugin::TensorArg x = call.tensor(1);
    const auto rows = static_cast<uint64_t>(std::min(rows_in(x), kBlockRows));
    const auto depth = static_cast<uint64_t>(x.dim(-1));
    const auto width = static_cast<uint64_t>(call.tensor(2).dim(0));
    sums = values + even(x.is(plugin::i8) ? 0 : rows * depth);
    scales = sums + even(rows * width * sizeof(int32_t));
    bias = scales + even(rows * sizeof(float));
    scratchpad = bias + even(call.present(5) ? width * sizeof(float) : 0);
    size = scratchpad + call.prepared<W8a8Products>()->workspace();
  }
  template <class T>
  static T* at(const plugin::Call& call, uint64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(call.workspace()) + offset);
  }

 private:
  static uint64_t even(uint64_t bytes) { return (bytes + 63) / 64 * 64; }
};

class W8a8 {
 public:
  explicit W8a8(const plugin::Call& call)
      : call_(call),
        room_(call),
        depth_(call.tensor(2).dim(1)),
        width_(call.tensor(2).dim(0)),
        values_(W8a8Room::at<int8_t>(call, room_.values)),
        sums_(W8a8Room::at<int32_t>(call, room_.sums)),
        scales_(W8a8Room::at<float>(call, room_.scales)) {
    const plugin::TensorArg bias = call.optional_tensor(5);
    if (!bias) return;
    bias_ = W8a8Room::at<float>(call, room_.bias);
    widen(bias.data(), bias.dtype(), width_, bias_);
  }

  int32_t run_block(int64_t first, int64_t rows) {
    int8_t* const from = quantize(first, rows);
    const Prepared& prepared = call_.prepared<W8a8Products>()->of(rows);
    const int32_t outcome = prepared.run(call_, {sums_, from, weight_data(call_, prepared)},
                                         W8a8Room::at<void>(call_, room_.scratchpad));
    if (outcome == OPMUX_OK) store(first, rows);
    return outcome;
  }

 private:
  int8_t* quantize(int64_t first, int64_t rows) {
    const plugin::TensorArg x = call_.tensor(1), given = call_.optional_tensor(4);
    if (given) {
      const Rows at(given.c(), 0);
      for (int64_t r = 0; r < rows; ++r) scales_[r] = element_at(given.c(), at.offset(first + r));
    }
    if (x.is(plugin::i8)) return x.data<int8_t>() + first * depth_;
    with_element(x.dtype(), [&]<class T>(Tag<T>) {
      const T* const row = x.data<const T>() + first * depth_;
      call_.for_each(rows, [&](int64_t r) {
        scales_[r] = quantize_row(row + r * depth_, depth_, given ? &scales_[r] : nullptr,
                                  values_ + r * depth_);
      });
    });
    return values_;
  }

  void store(int64_t first, int64_t rows) {
    const plugin::TensorArg y = call_.tensor(0);
    const float* const weight_scale = call_.tensor(3).data<const float>();
    with_element(y.dtype(), [&]<class T>(Tag<T>) {
      T* const row = y.data<T>() + first * width_;
      call_.for_each(rows, [&](int64_t r) {
        scale_row(sums_ + r * width_, width_, scales_[r], weight_scale, bias_, row + r * width_);
      });
    });
  }

  const plugin::Call& call_;
  W8a8Room room_;
  int64_t depth_, width_;
  int8_t* values_;
  int32_t* sums_;
  float* scales_;
  float* bias_ = nullptr;
};

int32_t run_w8a8(const plugin::Call& call) {
  const plugin::TensorArg x = call.tensor(1);
  if (x.is(plugin::i8) && !call.present(4)) {
    return plugin::invalid(call.error(), "w8a8.x_scale", "x is i8 and needs x_scale");
  }
  W8a8 product(call);
  const int64_t rows = rows_in(x);
  for (int64_t first = 0; first < rows; first += kBlockRows) {
    const int32_t outcome = product.run_block(first, std::min(kBlockRows, rows - first));
    if (outcome != OPMUX_OK) return outcome;
  }
  return OPMUX_OK;
}

}  // namespace

void add_linear_w8a8(plugin::Backend& backend) {
  plugin::Impl impl{"linear_w8a8", "dense"};
  plugin::Caps caps;
  caps.device_type(OPMUX_DEVICE_CPU)
      .contiguous("y")
      .contiguous("x")
      .contiguous("weight")
      .contiguous("weight_scale")
      .contiguous("bias")
      .at_least("K", 1)
      .cpu_features(kVectorFeatures)
      .dtypes("y", {plugin::f32, plugin::f16, plugin::bf16})
      .dtypes("x", {plugin::i8, plugin::f32, plugin::f16, plugin::bf16})
      .dtypes("weight", {plugin::i8})
      .dtypes("weight_scale", {plugin::f32})
      .dtypes("x_scale", {plugin::f32, plugin::f16, plugin::bf16})
      .dtypes("bias", {plugin::f32, plugin::f16, plugin::bf16});
  impl.signature(kW8a8Signature)
      .caps(caps)
      .run(run_w8a8)
      .plan(plan_w8a8, {{OPMUX_FACT_DTYPE, "x"},
                        {OPMUX_FACT_DIM, "rows"},
                        {OPMUX_FACT_DIM, "N"},
                        {OPMUX_FACT_DIM, "K"}})
      .workspace([](const plugin::Call& call) { return W8a8Room(call).size; });
  backend.add(packs_weight(impl));
}

}  // namespace opmux::backends::onednn
