#include "backends/openblas/implementations.hpp"
#include "backends/openblas/product.hpp"

namespace opmux::backends::openblas {
namespace {

// Views all leading dimensions as the rows of one matrix; false if the rows are not evenly spaced.
bool as_one_matrix(const plugin::TensorArg& t, Block& m) {
  m = {&t.c(), 0, 1, 0, t.dim(-1), t.stride(-1)};
  for (int i = t.rank() - 2; i >= 0; --i) {
    if (t.dim(i) == 1) continue;
    if (m.rows == 1) m.row_stride = t.stride(i);
    if (m.rows != 1 && t.stride(i) != m.rows * m.row_stride) return false;
    m.rows *= t.dim(i);
  }
  return true;
}

Product linear_product(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2);
  const plugin::TensorArg bias = call.optional_tensor(3);
  const Block transposed{&weight.c(),     0, weight.dim(1), weight.stride(1), weight.dim(0),
                         weight.stride(0)};
  const opmux_tensor* added = bias ? &bias.c() : nullptr;
  Block to, from;
  if (as_one_matrix(y, to) && as_one_matrix(x, from)) {
    return {Rows(y.c(), y.rank()),
            Rows(x.c(), x.rank()),
            Rows(weight.c(), 2),
            to,
            from,
            transposed,
            added};
  }
  return {Rows(y.c(), 2), Rows(x.c(), 2), Rows(weight.c(), 2), last_two(y), last_two(x),
          transposed,     added};
}

}  // namespace

plugin::Impl linear() {
  constexpr std::string_view kSignature =
      "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], Tensor? bias[N])";
  return by_gemm("linear", kSignature, "K")
      .workspace(
          [](const plugin::Call& call) { return product_workspace(call, linear_product(call)); })
      .run([](const plugin::Call& call) { return run_product(call, linear_product(call)); });
}

}  // namespace opmux::backends::openblas
