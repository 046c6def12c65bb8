#include "backends/openblas/implementations.hpp"
#include "backends/openblas/product.hpp"

namespace opmux::backends::openblas {
namespace {

Product matmul_product(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  return {Rows(y.c(), 2), Rows(a.c(), 2), Rows(b.c(), 2), last_two(y),
          last_two(a),    last_two(b),    nullptr};
}

}  // namespace

plugin::Impl matmul() {
  constexpr std::string_view kSignature =
      "matmul(out Tensor y[..., M, N], Tensor a[..., M, K], Tensor b[..., K, N])";
  return by_gemm("matmul", kSignature, "K")
      .workspace(
          [](const plugin::Call& call) { return product_workspace(call, matmul_product(call)); })
      .run([](const plugin::Call& call) { return run_product(call, matmul_product(call)); });
}

}  // namespace opmux::backends::openblas
