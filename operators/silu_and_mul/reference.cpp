#include "backends/common/activation.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {

plugin::Impl silu_and_mul() {
  constexpr std::string_view kSignature =
      "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H";
  return scalar("silu_and_mul", kSignature).run([](const plugin::Call& call) {
    gate_rows(call.tensor(0), call.tensor(1), silu);
  });
}

}  // namespace opmux::backends::reference
