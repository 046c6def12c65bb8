// Attention in double, independent of the kernels. Shared by the tests of all backends.
#pragma once

#include <array>
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

// One query: q(d), k(j, d), v(j, d), and whether it sees key j.
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

// An error in a logit changes each weight by that factor; sums of weights and of values follow.
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

struct Heads {
  Tensor q, k, v;
};

// Batch, queries, keys, heads of q and of k, sizes of a key and of a value.
inline Heads make_heads(opmux_dtype dtype, int64_t b, int64_t s, int64_t t, int64_t hq, int64_t hkv,
                        int64_t d, int64_t dv, Layout layout = Layout::contiguous) {
  return {random(dtype, {b, s, hq, d}, layout, 1), random(dtype, {b, t, hkv, d}, layout, 2),
          random(dtype, {b, t, hkv, dv}, layout, 3)};
}

// Index of [b, h, s, j] in a mask whose dimensions may be missing or 1.
inline int64_t mask_place(const Tensor& mask, std::array<int64_t, 4> at) {
  int64_t place = 0;
  const int missing = 4 - mask.c().ndim;
  for (int i = missing; i < 4; ++i) {
    const int64_t size = mask.dim(i - missing);
    place = place * size + (size == 1 ? 0 : at[size_t(i)]);
  }
  return place;
}

inline std::vector<Expected> expected_attention(const Heads& x, const AttentionCase& c,
                                                const Tensor* mask = nullptr) {
  const int64_t queries = x.q.dim(1), heads = x.q.dim(2), size = x.q.dim(3);
  const int64_t keys = x.k.dim(1), kv_heads = x.k.dim(2), value_size = x.v.dim(3);
  std::vector<Expected> result;
  for (int64_t i = 0; i < x.q.dim(0) * queries * heads; ++i) {
    const int64_t h = i % heads, s = i / heads % queries, b = i / heads / queries;
    const int64_t kv = h / (heads / kv_heads);
    const auto place = [&](int64_t j) { return (b * keys + j) * kv_heads + kv; };
    const OneQuery one{
        keys,
        size,
        value_size,
        [&](int64_t d) { return x.q.get(i * size + d); },
        [&](int64_t j, int64_t d) { return x.k.get(place(j) * size + d); },
        [&](int64_t j, int64_t d) { return x.v.get(place(j) * value_size + d); },
        [&](int64_t j) { return sees_by_position(c, s, queries, keys, j); },
        [&](int64_t j) {
          if (!mask) return 0.0;
          const double value = mask->get(mask_place(*mask, {b, h, s, j}));
          return mask->dtype().code != OPMUX_DTYPE_BOOL ? value : value != 0 ? 0 : -HUGE_VAL;
        }};
    const std::vector<Expected> row = expected_query(c, one, h);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

inline std::vector<opmux_arg> attention_args(const Tensor& y, const Heads& x,
                                             const AttentionCase& c, const Tensor* mask = nullptr) {
  return {arg(y),
          arg(x.q),
          arg(x.k),
          arg(x.v),
          arg(mask),
          bool_arg(c.causal),
          c.scale ? arg(*c.scale) : absent(),
          int_arg(c.window),
          arg(c.sink),
          arg(c.softcap)};
}

inline CallResult attend_with(const opmux_impl& impl, const Tensor& y, const Heads& x,
                              const AttentionCase& c = {}, const Tensor* mask = nullptr,
                              const CallOptions& options = {}) {
  return call(impl, attention_args(y, x, c, mask), options);
}

inline Tensor output_for(const Heads& x, Layout layout = Layout::contiguous) {
  return make(x.q.dtype(), {x.q.dim(0), x.q.dim(1), x.q.dim(2), x.v.dim(3)}, layout);
}

}  // namespace opmux::testing
