#include "backends/onednn/implementations.hpp"
#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {
namespace {

using Desc = dnnl::memory::desc;

constexpr std::string_view kMatmulSignature =
    "matmul(out Tensor y[..., M, N], Tensor a[..., M, K], Tensor b[..., K, N])";

// Describes a batch of row-major matrices (or their transposes) with optional row padding. oneDNN
// accepts some other layouts at creation and then fails to run, so they are declined here.
Desc strided(const plugin::TensorArg& tensor) {
  const auto declined = [] {
    return plugin::Declined("onednn.layout", "matrices must be dense or have padded rows");
  };
  dnnl::memory::dims dims(tensor.shape().begin(), tensor.shape().end());
  dnnl::memory::dims strides(tensor.strides().begin(), tensor.strides().end());
  const size_t column = dims.size() - 1, row = dims.size() - 2;
  const bool transposed = dims[column] > 1 && strides[column] != 1;
  const size_t inner = transposed ? row : column, outer = transposed ? column : row;
  if (dims[inner] == 1) strides[inner] = 1;
  if (dims[outer] == 1) strides[outer] = dims[inner];
  if (strides[inner] != 1 || strides[outer] < dims[inner]) throw declined();
  const int64_t matrix = dims[outer] * strides[outer];
  if (dims.size() == 3 && dims[0] == 1) strides[0] = matrix;
  if (dims.size() == 3 && strides[0] < matrix) throw declined();
  return {dims, data_type_of(tensor.dtype()), strides};
}

// Joins the leading dimensions into one; a single matrix has none.
Desc contiguous(const plugin::TensorArg& tensor) {
  const int64_t rows = tensor.dim(-2), columns = tensor.dim(-1);
  const int64_t matrices = tensor.elements() / (rows * columns);
  const auto type = data_type_of(tensor.dtype());
  if (matrices == 1) return {{rows, columns}, type, {columns, 1}};
  return {{matrices, rows, columns}, type, {rows * columns, columns, 1}};
}

template <class Describe>
std::shared_ptr<Prepared> plan_matmul(const plugin::Call& call, Describe describe) {
  const Desc y = describe(call.tensor(0)), a = describe(call.tensor(1)),
             b = describe(call.tensor(2));
  const auto descriptor = described([&](const dnnl::primitive_attr& attributes) {
    return dnnl::matmul::primitive_desc(cpu(), a, b, y, attributes);
  });
  return std::make_shared<Prepared>(
      descriptor, dnnl::matmul(descriptor),
      std::initializer_list<Prepared::Argument>{
          {DNNL_ARG_DST, y}, {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}});
}

int32_t run_matmul(const plugin::Call& call) {
  return call.prepared<Prepared>()->run(
      call, {call.tensor(0).data(), call.tensor(1).data(), call.tensor(2).data()});
}

int32_t verify_matmul(const plugin::Facts& facts, opmux_error* why) {
  if (facts.dtype("a") == facts.dtype("b") && facts.dtype("a") == facts.dtype("y")) {
    return OPMUX_OK;
  }
  return plugin::decline(why, "verify.dtype", "y, a and b must have one dtype");
}

// oneDNN does not write the output if K is 0.
plugin::Impl implementation(std::string_view variant, plugin::Caps caps) {
  plugin::Impl impl{"matmul", variant};
  impl.signature(kMatmulSignature)
      .caps(caps.at_least("K", 1))
      .verify(verify_matmul,
              {{OPMUX_FACT_DTYPE, "y"}, {OPMUX_FACT_DTYPE, "a"}, {OPMUX_FACT_DTYPE, "b"}})
      .run(run_matmul);
  return impl;
}

}  // namespace

void add_matmul(plugin::Backend& backend) {
  // The primitives depend on the matrix sizes only, so tensors with other addresses or leading
  // shapes share one plan.
  plugin::Impl dense = implementation("dense", float_caps().contiguous());
  backend.add(prepared_by(dense,
                          [](const plugin::Call& call) { return plan_matmul(call, contiguous); },
                          {{OPMUX_FACT_DTYPE, "y"},
                           {OPMUX_FACT_DIM, "rows"},
                           {OPMUX_FACT_DIM, "M"},
                           {OPMUX_FACT_DIM, "N"},
                           {OPMUX_FACT_DIM, "K"}}));
  plugin::Impl any = implementation(
      "strided", float_caps().inner_contiguous("y").inner_contiguous("a").rank("y", 2, 3));
  backend.add(
      prepared_by(any, [](const plugin::Call& call) { return plan_matmul(call, strided); }, {}));
}

}  // namespace opmux::backends::onednn
