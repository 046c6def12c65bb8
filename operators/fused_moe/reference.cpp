#include <algorithm>

#include "backends/common/activation.hpp"
#include "backends/common/expert_choices.hpp"
#include "backends/common/panel.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

using Activation = float (*)(float);
// In the order of the schema's enum.
constexpr Activation kActivations[] = {silu, gelu, gelu_tanh};

// Applies one expert to `count` rows: out = (activation(gate) * up) w2.
class Expert {
 public:
  Expert(const plugin::TensorArg& w1, const plugin::TensorArg& w2, Activation activation)
      : w1_(w1), w2_(w2), activation_(activation), first_(w1.dim(2)), second_(w2.dim(2)) {}

  void apply(int64_t expert, const std::vector<float>& rows, int64_t count,
             std::vector<float>& hidden, std::vector<float>& out) {
    const size_t width = size_t(w2_.dim(2));
    hidden.resize(size_t(count) * 2 * width);
    multiply(rows.data(), count, matrix(w1_, expert), first_, hidden.data());
    for (size_t r = 0; r < size_t(count); ++r) {
      const float* gate = hidden.data() + r * 2 * width;
      for (size_t i = 0; i < width; ++i) {
        hidden[r * width + i] = activation_(gate[i]) * gate[width + i];
      }
    }
    out.resize(size_t(count * w2_.dim(1)));
    multiply(hidden.data(), count, matrix(w2_, expert), second_, out.data());
  }

 private:
  // Expert weights are stored as one row per output.
  static Matrix matrix(const plugin::TensorArg& w, int64_t expert) {
    return {&w.c(), expert * w.stride(0), w.dim(2), w.stride(2), w.dim(1), w.stride(1)};
  }

  const plugin::TensorArg &w1_, &w2_;
  Activation activation_;
  Panel first_, second_;
};

// The output of every selected expert for every token, before it is multiplied by the router
// weight; zeros where no expert is selected. Reads each expert's weights once.
std::vector<float> apply_experts(const plugin::Call& call, const std::vector<float>& x,
                                 const std::vector<int64_t>& choices, size_t per_token) {
  const plugin::TensorArg w1 = call.tensor(2), w2 = call.tensor(3);
  const size_t size = size_t(w2.dim(1));
  Expert expert(w1, w2, kActivations[call.i64(6)]);
  std::vector<float> results(choices.size() * size), rows, hidden, out;
  for (int64_t e = 0; e < w1.dim(0); ++e) {
    std::vector<size_t> taken;
    rows.clear();
    for (size_t c = 0; c < choices.size(); ++c) {
      if (choices[c] != e) continue;
      taken.push_back(c);
      const auto row = x.begin() + int64_t(c / per_token * size);
      rows.insert(rows.end(), row, row + int64_t(size));
    }
    if (taken.empty()) continue;
    expert.apply(e, rows, int64_t(taken.size()), hidden, out);
    for (size_t i = 0; i < taken.size(); ++i) {
      std::copy_n(out.begin() + int64_t(i * size), size,
                  results.begin() + int64_t(taken[i] * size));
    }
  }
  return results;
}

int32_t run_fused_moe(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), topk_weights = call.tensor(4);
  const plugin::TensorArg ids = call.tensor(5);
  const ExpertChoices chosen(ids.c());
  const std::string wrong = chosen.complaint(call.tensor(2).dim(0));
  if (!wrong.empty()) return plugin::invalid(call.error(), "moe.expert", wrong);
  std::vector<int64_t> choices;
  for (int64_t t = 0; t < chosen.tokens(); ++t) {
    for (int64_t i = 0; i < chosen.per_token(); ++i) choices.push_back(chosen.expert(t, i));
  }
  const std::vector<float> x = load_rows(call.tensor(1)), weights = load_rows(topk_weights);
  const size_t per_token = size_t(topk_weights.dim(-1)), size = size_t(y.dim(-1));
  const std::vector<float> results = apply_experts(call, x, choices, per_token);
  std::vector<float> row(size);
  const Rows to(y.c());
  for (size_t t = 0; t < size_t(to.count()); ++t) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (size_t c = t * per_token; c < (t + 1) * per_token; ++c) {
      if (choices[c] < 0) continue;
      for (size_t i = 0; i < size; ++i) row[i] += weights[c] * results[c * size + i];
    }
    store_row(y.c(), to.offset(int64_t(t)), int64_t(size), row.data());
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl fused_moe() {
  constexpr std::string_view kSignature =
      "fused_moe(out Tensor y[..., H], Tensor x[..., H], const Tensor w1[E, I2, H], "
      "const Tensor w2[E, H, I], Tensor topk_weights[..., K], Tensor topk_ids[..., K], "
      "enum{silu, gelu, gelu_tanh} activation = silu) where I2 == 2 * I";
  plugin::Caps caps;
  caps.dtypes("topk_ids", {plugin::i32, plugin::i64});
  return scalar("fused_moe", kSignature, caps).run(run_fused_moe);
}

}  // namespace opmux::backends::reference
