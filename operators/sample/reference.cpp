#include <algorithm>
#include <numeric>

#include "backends/common/descending.hpp"
#include "backends/common/draw.hpp"
#include "backends/common/integers.hpp"
#include "backends/common/philox.hpp"
#include "backends/common/rows.hpp"
#include "backends/common/sampling.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// Zeroes the weights of tokens that top_k and top_p exclude. `order` lists the tokens by descending
// logit.
void filter(const Draw& draw, const std::vector<int64_t>& order, std::vector<uint64_t>& weights) {
  const size_t kept = draw.top_k > 0 ? std::min(order.size(), size_t(draw.top_k)) : order.size();
  for (size_t i = kept; i < order.size(); ++i) weights[size_t(order[i])] = 0;
  const uint64_t total = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  const double share = double(draw.top_p) * double(total);
  uint64_t before = 0;
  for (size_t i = 0; i < kept; ++i) {
    uint64_t& weight = weights[size_t(order[i])];
    const uint64_t own = weight;
    if (i > 0 && draw.top_p < 1 && !(double(before) < share)) weight = 0;
    before += own;
  }
}

// The first token at which the running sum of weights exceeds the drawn number.
int64_t draw_token(const Draw& draw, const std::vector<uint64_t>& weights) {
  const uint64_t total = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  uint64_t left = draw_below(total, random_bits(draw.seed, draw.offset));
  size_t token = 0;
  while (left >= weights[token]) left -= weights[token++];
  return int64_t(token);
}

class Sampler {
 public:
  explicit Sampler(size_t tokens) : logits_(tokens), weights_(tokens), order_(tokens) {}

  float* logits() { return logits_.data(); }

  // Returns the chosen token; -1 if no token has a logit above -inf.
  int64_t choose(const Draw& draw) {
    const auto largest = std::max_element(logits_.begin(), logits_.end(), [](float a, float b) {
      return rank_value(a) < rank_value(b);
    });
    if (largest == logits_.end() || rank_value(*largest) == rank_value(NAN)) return -1;
    if (draw.temperature == 0) return largest - logits_.begin();
    const float slope = sampling_slope(draw.temperature);
    std::transform(logits_.begin(), logits_.end(), weights_.begin(),
                   [&](float l) { return sampling_weight(l, *largest, slope); });
    if (draw.filters()) {
      std::iota(order_.begin(), order_.end(), int64_t{0});
      std::sort(order_.begin(), order_.end(), Descending{logits_.data()});
      filter(draw, order_, weights_);
    }
    return draw_token(draw, weights_);
  }

 private:
  std::vector<float> logits_;
  std::vector<uint64_t> weights_;
  std::vector<int64_t> order_;
};

int32_t run_sample(const plugin::Call& call) {
  const plugin::TensorArg tokens = call.tensor(0), logits = call.tensor(1);
  const Rows from(logits.c()), to(tokens.c(), 0);
  const auto given = [&](uint32_t i) { return call.present(i) ? &call.tensor(i).c() : nullptr; };
  const Draws draws{given(2), given(3), given(4), given(5), given(6)};
  if (const Wrong wrong = draws.wrong(to.count())) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  Sampler sampler(size_t(logits.dim(-1)));
  for (int64_t r = 0; r < to.count(); ++r) {
    load_row(logits.c(), from.offset(r), logits.dim(-1), sampler.logits());
    put_integer(tokens.c(), to.offset(r), sampler.choose(draws.of(r)));
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl sample() {
  constexpr std::string_view kSignature =
      "sample(out Tensor tokens[...], Tensor logits[..., V], Tensor? temperature[...], "
      "Tensor? top_k[...], Tensor? top_p[...], Tensor? seed[...], Tensor? offset[...]) "
      "where V < 16777216";
  plugin::Caps caps;
  for (const char* name : {"tokens", "top_k", "seed", "offset"}) {
    caps.dtypes(name, {plugin::i32, plugin::i64});
  }
  return scalar("sample", kSignature, caps).run(run_sample);
}

}  // namespace opmux::backends::reference
