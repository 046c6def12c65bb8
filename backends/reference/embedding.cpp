#include <string>

#include "backends/common/integers.hpp"
#include "backends/common/rows.hpp"
#include "backends/reference/implementations.hpp"

namespace opmux::backends::reference {
namespace {

int32_t run_embedding(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), weight = call.tensor(1), ids = call.tensor(2);
  const Rows tokens(ids.c(), 0), to(y.c());
  for (int64_t t = 0; t < tokens.count(); ++t) {
    const int64_t id = integer_at(ids.c(), tokens.offset(t));
    if (id < 0 || id >= weight.dim(0)) {
      return plugin::invalid(call.error(), "embedding.id",
                             "id " + std::to_string(id) + " of token " + std::to_string(t) +
                                 " is outside [0, " + std::to_string(weight.dim(0)) + ")");
    }
  }
  for (int64_t t = 0; t < tokens.count(); ++t) {
    const int64_t id = integer_at(ids.c(), tokens.offset(t));
    copy_row(weight.c(), id * weight.stride(0), y.c(), to.offset(t), weight.dim(1));
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl embedding() {
  constexpr std::string_view kSignature =
      "embedding(out Tensor y[..., H], Tensor weight[V, H], Tensor ids[...])";
  plugin::Caps caps;
  caps.dtypes("ids", {plugin::i32, plugin::i64});
  return scalar("embedding", kSignature, caps).run(run_embedding);
}

}  // namespace opmux::backends::reference
