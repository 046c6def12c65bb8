// How `sample` draws from a row, outside of vector code.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/common/draw.hpp"
#include "backends/common/philox.hpp"
#include "backends/common/sampling.hpp"

namespace opmux::backends::simd {

// Where a logit stands below the largest: in 2^-24 of a power of two, so that its weight is
// sampling_power of it. From 40 * 2^24 on it has none.
inline constexpr uint32_t kNoWeight = 41u << 24;

struct Candidate {
  float logit;
  int32_t token;
};

// What makes a weight of a logit.
struct Weighing {
  float largest, slope;
  uint64_t operator()(float logit) const { return sampling_weight(logit, largest, slope); }
};

// Tokens and weights by their distance from the largest, 64 buckets for each power of two.
class Histogram {
 public:
  static size_t bucket(uint32_t steps) { return steps >> 18; }

  void add(uint32_t steps, uint64_t weight) {
    ++counts_[bucket(steps)];
    sums_[bucket(steps)] += weight;
  }
  uint64_t tokens() const {  // that have a weight at all
    uint64_t all = 0;
    for (size_t b = 0; b < kNone; ++b) all += counts_[b];
    return all;
  }
  uint64_t total() const {
    uint64_t all = 0;
    for (uint64_t sum : sums_) all += sum;
    return all;
  }
  // The bucket in which the number of tokens so far reaches `count`.
  size_t reaches_count(uint64_t count) const {
    size_t b = 0;
    for (uint64_t before = counts_[0]; before < count && b + 1 < kNone; before += counts_[b]) ++b;
    return b;
  }
  // The bucket in which the sum of weights so far reaches `share`.
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

// Draws among candidates by their weights: the first, by token, at which their running sum exceeds
// the number that was drawn.
inline int64_t draw_among(Candidate* first, Candidate* last, uint64_t total, const Draw& draw,
                          const Weighing& weight) {
  std::sort(first, last, [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
  uint64_t left = draw_below(total, random_bits(draw.seed, draw.offset));
  while (left >= weight(first->logit)) left -= weight((first++)->logit);
  return first->token;
}

// The candidates are all that top_k and top_p can leave; `total` is the weight of those that top_k,
// which is 0 if it leaves all, does leave.
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

// Room for the candidates of one row, if there can be any.
inline uint64_t candidate_bytes(const plugin::Call& call) {
  if (!call.present(3) && !call.present(4)) return 0;
  return (static_cast<uint64_t>(call.tensor(1).dim(-1)) * sizeof(Candidate) + 63) / 64 * 64;
}

inline int64_t sampling_workers(const plugin::Call& call) {
  constexpr int64_t kWorthAThread = 16384;  // logits
  const plugin::TensorArg logits = call.tensor(1);
  const int64_t rows = Rows(logits.c()).count();
  if (!call.parallel() || rows * logits.dim(-1) < 2 * kWorthAThread) return 1;
  return std::min<int64_t>(call.c().max_threads, rows);
}

inline uint64_t sampling_workspace(const plugin::Call& call) {
  return static_cast<uint64_t>(sampling_workers(call)) * candidate_bytes(call);
}

// Calls body(row, room) for each row, on several threads if the host lent them, each with a room.
template <class Body>
int32_t for_each_sampled_row(const plugin::Call& call, const Body& body) {
  const int64_t rows = Rows(call.tensor(0).c(), 0).count(), workers = sampling_workers(call);
  const uint64_t bytes = candidate_bytes(call);
  if (call.c().workspace_size < static_cast<uint64_t>(workers) * bytes) {
    return plugin::report(call.error(), OPMUX_RESOURCE, "sample.workspace",
                          "the workspace is smaller than asked for");
  }
  char* const first = static_cast<char*>(call.workspace());
  call.for_each(workers, [&](int64_t worker) {
    auto* const room = reinterpret_cast<Candidate*>(first + static_cast<uint64_t>(worker) * bytes);
    for (int64_t r = worker; r < rows; r += workers) body(r, room);
  });
  return OPMUX_OK;
}

}  // namespace opmux::backends::simd
