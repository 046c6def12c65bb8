#include "backends/common/panel.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

void run_matmul(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  const int64_t height = a.dim(-2), depth = a.dim(-1), width = b.dim(-1);
  std::vector<float> rows(static_cast<size_t>(height * depth));
  std::vector<float> products(static_cast<size_t>(height * width));
  Panel panel(depth);
  const Rows to(y.c(), 2), left(a.c(), 2), right(b.c(), 2);
  for (int64_t i = 0; i < to.count(); ++i) {
    for (int64_t r = 0; r < height; ++r) {
      load_row(a.c(), left.offset(i) + r * a.stride(-2), depth, rows.data() + r * depth);
    }
    multiply(rows.data(), height,
             {&b.c(), right.offset(i), depth, b.stride(-2), width, b.stride(-1)}, panel,
             products.data());
    for (int64_t r = 0; r < height; ++r) {
      store_row(y.c(), to.offset(i) + r * y.stride(-2), width, products.data() + r * width);
    }
  }
}

}  // namespace

plugin::Impl matmul() {
  constexpr std::string_view kSignature =
      "matmul(out Tensor y[..., M, N], Tensor a[..., M, K], Tensor b[..., K, N])";
  return scalar("matmul", kSignature).run(run_matmul);
}

}  // namespace opmux::backends::reference
