#include "backends/common/checked_indices.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

int32_t run_embedding(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), weight = call.tensor(1);
  const Indices ids(call.tensor(2).c());
  if (const Wrong wrong = wrong_id(weight.c(), ids)) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const Rows to(y.c());
  for (int64_t t = 0; t < ids.count(); ++t) {
    copy_row(weight.c(), ids[t] * weight.stride(0), y.c(), to.offset(t), weight.dim(1));
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
