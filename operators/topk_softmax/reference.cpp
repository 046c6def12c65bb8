#include <algorithm>
#include <numeric>

#include "backends/common/descending.hpp"
#include "backends/common/integers.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Writes the weights of the selected experts, in the order of selection.
void choose_weights(const std::vector<float>& softmax, const std::vector<int64_t>& order,
                    bool renormalize, std::vector<float>& weights) {
  float sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] = softmax[size_t(order[i])];
  if (!renormalize || sum == 0) return;
  for (float& weight : weights) weight /= sum;
}

void run_topk_softmax(const plugin::Call& call) {
  const plugin::TensorArg weights = call.tensor(0), ids = call.tensor(1), logits = call.tensor(2);
  const size_t chosen = size_t(weights.dim(-1));
  std::vector<float> row(static_cast<size_t>(logits.dim(-1))), result(chosen);
  std::vector<int64_t> order(row.size());
  const Rows from(logits.c()), to(weights.c()), id_rows(ids.c());
  for (int64_t r = 0; r < from.count(); ++r) {
    load_row(logits.c(), from.offset(r), logits.dim(-1), row.data());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::partial_sort(order.begin(), order.begin() + int64_t(chosen), order.end(),
                      Descending{row.data()});
    softmax_row(row, 1);
    choose_weights(row, order, call.boolean(3), result);
    store_row(weights.c(), to.offset(r), int64_t(chosen), result.data());
    for (size_t i = 0; i < chosen; ++i) {
      put_integer(ids.c(), id_rows.offset(r) + int64_t(i) * ids.stride(-1), order[i]);
    }
  }
}

}  // namespace

plugin::Impl topk_softmax() {
  constexpr std::string_view kSignature =
      "topk_softmax(out Tensor weights[..., K], out Tensor ids[..., K], Tensor logits[..., E], "
      "bool renormalize = false) where K <= E";
  plugin::Caps caps;
  caps.dtypes("ids", {plugin::i32, plugin::i64});
  return scalar("topk_softmax", kSignature, caps).run(run_topk_softmax);
}

}  // namespace opmux::backends::reference
