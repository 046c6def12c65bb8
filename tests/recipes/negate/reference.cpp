#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {

plugin::Impl negate() {
  constexpr std::string_view kSignature = "negate(out Tensor y[..., H], Tensor x[..., H])";
  return scalar("negate", kSignature).run([](const plugin::Call& call) {
    const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
    std::vector<float> row(static_cast<size_t>(x.dim(-1)));
    const Rows from(x.c()), to(y.c());
    for (int64_t r = 0; r < from.count(); ++r) {
      load_row(x.c(), from.offset(r), x.dim(-1), row.data());
      for (float& value : row) value = -value;
      store_row(y.c(), to.offset(r), x.dim(-1), row.data());
    }
  });
}

}  // namespace opmux::backends::reference
