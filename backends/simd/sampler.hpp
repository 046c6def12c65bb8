// Scalar part of `sample`: draws a token from a row.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/common/draw.hpp"
#include "backends/common/philox.hpp"
#include "backends/common/sampling.hpp"

namespace opmux::backends::simd {

// Steps are the distance of a logit below the largest, in units of 2^-24 of a power of two; the
// weight is sampling_power(steps). From 40 * 2^24 on the weight is 0.
inline constexpr uint32_t kNoWeight = 41u << 24;

struct Candidate {
  float logit;
  int32_t token;
};

// Converts a logit to its weight.
struct Weighing {
  float largest, slope;
  uint64_t operator()(float logit) const { return sampling_weight(logit, largest, slope); }
};

// Counts tokens and sums weights by distance from the largest logit, with 64 buckets per power of
// two.
class Histogram {
 public:
  static size_t bucket(uint32_t steps) { return steps >> 18; }

  void add(uint32_t steps, uint64_t weight) {
    ++counts_[bucket(steps)];
    sums_[bucket(steps)] += weight;
  }
  uint64_t tokens() const {  // Tokens with a nonzero weight.
    uint64_t all = 0;
    for (size_t b = 0; b < kNone; ++b) all += counts_[b];
    return all;
  }
  uint64_t total() const {
    uint64_t all = 0;
    for (uint64_t sum : sums_) all += sum;
    return all;
  }
  // The first bucket at which the running number of tokens reaches `count`.
  size_t reaches_count(uint64_t count) const {
    size_t b = 0;
    for (uint64_t before = counts_[0]; before < count && b + 1 < kNone; before += counts_[b]) ++b;
    return b;
  }
  // The first bucket at which the running sum of weights reaches `share`.
  size_t reaches_share(double share) const {
    size_t b = 0;
    for (uint64_t sum = sums_[0]; static_cast<double>(sum) < share && b + 1 < kNone;) {
      sum += sums_[++b];
    }
    return b;
  }

 private:
  static constexpr size_t kNone = kNoWeight >> 18;
  uint32_t counts_[kNone + 1] = {};
  uint64_t sums_[kNone + 1] = {};
};

// Draws from the candidates by weight: the first one, in token order, at which the running sum
// exceeds the drawn number.
inline int64_t draw_among(Candidate* first, Candidate* last, uint64_t total, const Draw& draw,
                          const Weighing& weight) {
  std::sort(first, last, [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  uint64_t left = draw_below(total, random_bits(draw.seed, draw.offset));
  while (left >= weight(first->logit)) left -= weight((first++)->logit);
  return first->token;
}

// Applies top_k and top_p to the candidates and draws one of the rest. The candidates include every
// token that can pass both filters. `top_k` is 0 if it excludes nothing; `total` is the weight of
// the tokens that pass it.
inline int64_t draw_filtered(Candidate* first, Candidate* last, uint64_t top_k, uint64_t total,
                             const Draw& draw, const Weighing& weight) {
  std::sort(first, last, [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  });
  if (top_k > 0) {
    last = first + std::min(last - first, static_cast<ptrdiff_t>(top_k));
    total = 0;
    for (const Candidate* c = first; c < last; ++c) total += weight(c->logit);
  }
  const double share = static_cast<double>(draw.top_p) * static_cast<double>(total);
  Candidate* end = first;
  uint64_t before = 0;
  while (end < last && (end == first || draw.top_p >= 1 || static_cast<double>(before) < share)) {
    before += weight((end++)->logit);
  }
  return draw_among(first, end, before, draw, weight);
}

inline Draws read_draws(const plugin::Call& call) {
  const auto given = [&](uint32_t i) { return call.present(i) ? &call.tensor(i).c() : nullptr; };
  return {given(2), given(3), given(4), given(5), given(6)};
}

// Bytes for the candidates of one row; 0 if the call does not filter.
inline uint64_t candidate_bytes(const plugin::Call& call) {
  if (!call.present(3) && !call.present(4)) return 0;
  return (static_cast<uint64_t>(call.tensor(1).dim(-1)) * sizeof(Candidate) + 63) / 64 * 64;
}

inline int64_t sampling_workers(const plugin::Call& call) {
  constexpr int64_t kWorthAThread = 16384;  // In logits.
  const plugin::TensorArg logits = call.tensor(1);
  const int64_t rows = Rows(logits.c()).count();
  if (!call.parallel() || rows * logits.dim(-1) < 2 * kWorthAThread) return 1;
  return std::min<int64_t>(call.c().max_threads, rows);
}

inline uint64_t sampling_workspace(const plugin::Call& call) {
  return static_cast<uint64_t>(sampling_workers(call)) * candidate_bytes(call);
}

// Calls body(row, room) for each row, on several threads if the host lends them; each thread has
// separate scratch memory.
template <class Body>
int32_t for_each_sampled_row(const plugin::Call& call, const Body& body) {
  const int64_t rows = Rows(call.tensor(0).c(), 0).count(), workers = sampling_workers(call);
  const uint64_t bytes = candidate_bytes(call);
  if (call.c().workspace_size < static_cast<uint64_t>(workers) * bytes) {
    return plugin::report(call.error(), OPMUX_RESOURCE, "sample.workspace",
                          "the workspace is smaller than requested");
  }
  char* const first = static_cast<char*>(call.workspace());
  call.for_each(workers, [&](int64_t worker) {
    auto* const room = reinterpret_cast<Candidate*>(first + static_cast<uint64_t>(worker) * bytes);
    for (int64_t r = worker; r < rows; r += workers) body(r, room);
  });
  return OPMUX_OK;
}

}  // namespace opmux::backends::simd
