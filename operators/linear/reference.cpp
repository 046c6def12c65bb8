#include "backends/common/panel.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

void run_linear(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1), weight = call.tensor(2);
  const int64_t depth = weight.dim(1), width = weight.dim(0);
  const std::vector<float> rows = load_rows(x);
  const int64_t count = Rows(y.c()).count();
  std::vector<float> products(static_cast<size_t>(count * width));
  Panel panel(depth);
  multiply(rows.data(), count, {&weight.c(), 0, depth, weight.stride(1), width, weight.stride(0)},
           panel, products.data());
  add_bias_and_store(y, products, call.optional_tensor(3));
}

}  // namespace

plugin::Impl linear() {
  constexpr std::string_view kSignature =
      "linear(out Tensor y[..., N], Tensor x[..., K], const Tensor weight[N, K], Tensor? bias[N])";
  return scalar("linear", kSignature).run(run_linear);
}

}  // namespace opmux::backends::reference
