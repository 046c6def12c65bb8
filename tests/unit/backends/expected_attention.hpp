// Attention in double, written apart from the kernels. Shared by the tests of all backends.
#pragma once

#include <functional>
#include <optional>

#include "expected.hpp"

namespace opmux::testing {

struct AttentionCase {
  bool causal = false;
  std::optional<double> scale = std::nullopt;
  int64_t window = 0;
  double softcap = 0;
  const Tensor* sink = nullptr;
};

// The results of one query: q(d), k(j, d), v(j, d), and whether it sees key j at all.
struct OneQuery {
  int64_t keys, size, value_size;
  std::function<double(int64_t)> q;
  std::function<double(int64_t, int64_t)> k, v;
  std::function<bool(int64_t)> sees;
  std::function<double(int64_t)> added;
};

inline bool sees_by_position(const AttentionCase& c, int64_t query, int64_t queries, int64_t keys,
                             int64_t key) {
  const int64_t distance = query + keys - queries - key;
  if (c.causal && distance < 0) return false;
  return c.window == 0 || std::abs(distance) < c.window;
}

// An error in a logit changes every weight by that factor; sums of weights and of values follow.
inline std::vector<Expected> expected_query(const AttentionCase& c, const OneQuery& one,
                                            int64_t head) {
  const double scale = c.scale.value_or(1 / std::sqrt(double(std::max<int64_t>(one.size, 1))));
  std::vector<std::pair<int64_t, double>> logits;
  double logit_error = 0, total = 0;
  double largest = c.sink ? c.sink->get(head) : -HUGE_VAL;
  for (int64_t j = 0; j < one.keys; ++j) {
    if (!one.sees(j) || one.added(j) == -HUGE_VAL) continue;
    double logit = 0, magnitude = 0;
    for (int64_t d = 0; d < one.size; ++d) {
      logit += one.q(d) * one.k(j, d) * scale;
      magnitude += std::fabs(one.q(d) * one.k(j, d) * scale);
    }
    if (c.softcap > 0) logit = c.softcap * std::tanh(logit / c.softcap);
    logit += one.added(j);
    magnitude += std::fabs(one.added(j)) + c.softcap;
    logit_error = std::max(logit_error, magnitude * (pairwise_error(one.size) + 6 * kEps));
    logits.emplace_back(j, logit);
    largest = std::max(largest, logit);
  }
  for (auto& [j, logit] : logits) {
    logit_error = std::max(logit_error, 2 * kEps * std::fabs(logit - largest));
    total += logit = std::exp(logit - largest);
  }
  if (c.sink) total += std::exp(c.sink->get(head) - largest);
  std::vector<Expected> result;
  for (int64_t d = 0; d < one.value_size; ++d) {
    double value = 0, magnitude = 0;
    for (const auto& [j, weight] : logits) {
      value += weight / total * one.v(j, d);
      magnitude += weight / total * std::fabs(one.v(j, d));
    }
    const double relative = 2 * logit_error + 2 * pairwise_error(one.keys) + 8 * kEps;
    result.push_back({value, magnitude * relative});
  }
  return result;
}

}  // namespace opmux::testing
