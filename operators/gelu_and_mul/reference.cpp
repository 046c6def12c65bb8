#include "backends/common/activation.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
plugin::Impl gelu_and_mul() {
  constexpr std::string_view kSignature =
      "gelu_and_mul(out Tensor y[..., H], Tensor x[..., H2], "
      "enum{none, tanh} approximate = none) where H2 == 2 * H";
  return scalar("gelu_and_mul", kSignature).run([](const plugin::Call& call) {
    gate_rows(call.tensor(0), call.tensor(1), call.i64(2) == 1 ? gelu_tanh : gelu);
  });
}

}  // namespace opmux::backends::reference
