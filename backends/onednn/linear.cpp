#include <algorithm>

#include "backends/onednn/implementations.hpp"
#include "backends/onednn/packed_weight.hpp"
#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {
namespace {

using Desc = dnnl::memory::desc;

constexpr std::string_view kLinearSignature =
    "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], Tensor? bias[N])";

Desc rows_of(const plugin::TensorArg& tensor, int64_t columns) {
  return {{rows_in(tensor), columns}, data_type_of(tensor.dtype()), {columns, 1}};
}

std::shared_ptr<Prepared> plan_linear(const plugin::Call& call) {
  const plugin::TensorArg bias = call.optional_tensor(3);
  const int64_t width = call.tensor(2).dim(0);
  const Desc y = rows_of(call.tensor(0), width);
  const Desc b = bias ? Desc({1, width}, data_type_of(bias.dtype()), {width, 1}) : Desc();
  return with_weight(call, [&](const Desc& w) {
    const Desc x = rows_of(call.tensor(1), w.get_dims()[0]);
    const auto descriptor = described([&](const dnnl::primitive_attr& attributes) {
      return bias ? dnnl::matmul::primitive_desc(cpu(), x, w, b, y, attributes)
                  : dnnl::matmul::primitive_desc(cpu(), x, w, y, attributes);
    });
    using List = std::initializer_list<Prepared::Argument>;
    const dnnl::matmul primitive(descriptor);
    if (!bias) {
      return std::make_shared<Prepared>(
          descriptor, primitive, List{{DNNL_ARG_DST, y}, {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}});
    }
    return std::make_shared<Prepared>(
        descriptor, primitive,
        List{{DNNL_ARG_DST, y}, {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_BIAS, b}});
  });
}

// Row length of x that the prepared product expects, including padding.
int64_t depth_of(const plugin::Call& call) {
  const bool packed = call.prepared<Prepared>()->takes_packed;
  return packed ? call.instance<PackedWeight>()->depth : call.tensor(2).dim(1);
}

// Bytes of the padded copy of x; 0 if x is used in place.
uint64_t copied_bytes(const plugin::Call& call) {
  const plugin::TensorArg x = call.tensor(1);
  const int64_t depth = depth_of(call);
  return depth == x.dim(-1) ? 0 : static_cast<uint64_t>(rows_in(x) * depth) * sizeof(uint16_t);
}

// Returns x itself, or a padded copy at the start of the workspace.
void* padded_rows(const plugin::Call& call) {
  constexpr int64_t kRows = 64;  // Rows copied per task.
  const plugin::TensorArg x = call.tensor(1);
  const int64_t size = x.dim(-1), padded = depth_of(call), rows = rows_in(x);
  if (size == padded) return x.data();
  const uint16_t* const from = x.data<const uint16_t>();
  auto* const to = static_cast<uint16_t*>(call.workspace());
  call.for_each((rows + kRows - 1) / kRows, [&](int64_t i) {
    const int64_t first = i * kRows;
    copy_rows(from + first * size, std::min(kRows, rows - first), size, padded,
              to + first * padded);
  });
  return to;
}

int32_t run_linear(const plugin::Call& call) {
  const Prepared& prepared = *call.prepared<Prepared>();
  void* const y = call.tensor(0).data();
  void* const x = padded_rows(call);
  void* const scratchpad = static_cast<char*>(call.workspace()) + copied_bytes(call);
  void* const weight = weight_data(call, prepared);
  const plugin::TensorArg bias = call.optional_tensor(3);
  return bias ? prepared.run(call, {y, x, weight, bias.data()}, scratchpad)
              : prepared.run(call, {y, x, weight}, scratchpad);
}

int32_t verify_linear(const plugin::Facts& facts, opmux_error* why) {
  const auto type = facts.dtype("y"), bias = facts.dtype("bias");
  if (facts.dtype("x") != type || facts.dtype("weight") != type) {
    return plugin::decline(why, "verify.dtype", "y, x and weight must have one dtype");
  }
  const int64_t f32 = OPMUX_DTYPE_FLOAT | 32 << 8 | 1 << 16;
  if (!bias || bias == type || bias == f32) return OPMUX_OK;
  return plugin::decline(why, "verify.dtype", "bias must be f32 or have the dtype of y");
}

}  // namespace

void add_linear(plugin::Backend& backend) {
  plugin::Impl impl{"linear", "dense"};
  impl.signature(kLinearSignature)
      // oneDNN does not write the output if K is 0.
      .caps(float_caps().contiguous().at_least("K", 1))
      .verify(verify_linear, {{OPMUX_FACT_DTYPE, "y"},
                              {OPMUX_FACT_DTYPE, "x"},
                              {OPMUX_FACT_DTYPE, "weight"},
                              {OPMUX_FACT_DTYPE, "bias"}})
      .run(run_linear);
  backend.add(prepared_by(packs_weight(impl), plan_linear,
                          {{OPMUX_FACT_DTYPE, "y"},
                           {OPMUX_FACT_DTYPE, "bias"},
                           {OPMUX_FACT_PRESENT, "bias"},
                           {OPMUX_FACT_DIM, "rows"},
                           {OPMUX_FACT_DIM, "N"},
                           {OPMUX_FACT_DIM, "K"}})
                  .workspace([](const plugin::Call& call) {
                    return copied_bytes(call) + call.prepared<Prepared>()->workspace();
                  }));
}

}  // namespace opmux::backends::onednn
