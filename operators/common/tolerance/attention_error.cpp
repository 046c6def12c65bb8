#include "operators/common/tolerance/attention_error.hpp"

#include <algorithm>

namespace opmux::verify::operators {
namespace {

struct Logit {
  double value = 0, error = 0;  ///< `error` is absolute
};

/// cap(scale * q.k) + mask. The error of the sum is relative to its magnitudes, tanh has a slope of
/// at most 1, and each further step adds one rounding.
Logit logit_of(const Query& query, size_t key, double scale, double softcap) {
  double sum = 0, magnitude = 0;
  for (size_t d = 0; d < query.q.size(); ++d) {
    sum += query.q[d] * query.k[key][d];
    magnitude += std::abs(query.q[d] * query.k[key][d]);
  }
  Logit logit{scale * sum, std::abs(scale) * magnitude *
                               (sum_error(static_cast<int64_t>(query.q.size())) + 4 * kUnit)};
  if (softcap > 0) {
    logit.value = softcap * std::tanh(logit.value / softcap);
    logit.error += (kFunction + 3 * kUnit) * std::abs(logit.value);
  }
  logit.error += kUnit * (std::abs(logit.value) + std::abs(query.mask[key]));
  logit.value += query.mask[key];
  logit.error += kUnit * std::abs(logit.value);
  return logit;
}

/// The softmax weights of the keys and their relative errors.
struct Weights {
  std::vector<double> weight, error;

  Weights(const std::vector<Logit>& logits, double sink) {
    double largest = sink;
    for (const Logit& logit : logits) largest = std::max(largest, logit.value);
    double sum = std::exp(sink - largest), off = 0;
    for (const Logit& logit : logits) {
      weight.push_back(std::exp(logit.value - largest));
      error.push_back(logit.error + 2 * kUnit * (std::abs(logit.value) + std::abs(largest)));
      sum += weight.back();
      off += weight.back() * error.back();
    }
    // An implementation with a running maximum rescales the partial sums repeatedly, so allow twice
    // the error of each sum.
    const double always = off / sum + 2 * kUnit * std::abs(sink == -INFINITY ? 0 : sink) +
                          4 * sum_error(static_cast<int64_t>(logits.size())) + 4 * kFunction;
    for (size_t t = 0; t < weight.size(); ++t) {
      weight[t] /= sum;
      error[t] = std::expm1(error[t] + always);
    }
  }
};

}  // namespace

bool sees(const CallView& c, bool causal, int64_t place, int64_t queries, int64_t keys,
          int64_t key) {
  const int64_t at = place + keys - queries, window = c.integer("window", 0);
  if (causal && key > at) return false;
  return window == 0 || std::abs(at - key) < window;
}

void bound_query(const CallView& c, const Query& query, DType values, double* bounds) {
  const auto depth = static_cast<double>(query.q.size());
  const double scale = c.real("scale", depth == 0 ? 1 : 1 / std::sqrt(depth));
  std::vector<Logit> logits;
  for (size_t t = 0; t < query.k.size(); ++t) {
    logits.push_back(logit_of(query, t, scale, c.real("softcap", 0)));
  }
  const Weights weights(logits, query.sink);
  const double rounding = values == f32 ? 0 : unit_roundoff(values);
  const double flushed = values == f32 ? kSmallest : smallest(values) + kSmallest;
  for (size_t t = 0; t < query.v.size(); ++t) {
    const double relative = weights.error[t] + rounding;
    // Implementations may flush subnormal values and products to zero.
    const double lost = kSmallest * (1 + weights.weight[t]);
    for (size_t d = 0; d < query.v[t].size(); ++d) {
      bounds[d] += std::abs(query.v[t][d]) * (weights.weight[t] * relative + flushed) + lost;
    }
  }
}

}  // namespace opmux::verify::operators
