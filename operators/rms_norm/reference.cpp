#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {

plugin::Impl rms_norm() {
  constexpr std::string_view kSignature =
      "rms_norm(out Tensor y[..., H], Tensor x[..., H], Tensor? weight[H], float eps = 1e-6, "
      "bool round_before_weight = false)";
  return scalar("rms_norm", kSignature).run([](const plugin::Call& call) {
    const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
    const int64_t hidden = x.dim(-1);
    const NormWeight weight(call, x);
    std::vector<float> row(static_cast<size_t>(hidden));
    const Rows from(x.c()), to(y.c());
    for (int64_t r = 0; r < from.count(); ++r) {
      load_row(x.c(), from.offset(r), hidden, row.data());
      weight.normalize(row, float(call.f64(3, 1e-6)));
      store_row(y.c(), to.offset(r), hidden, row.data());
    }
  });
}

}  // namespace opmux::backends::reference
