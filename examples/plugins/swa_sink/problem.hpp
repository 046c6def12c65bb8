#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <opmux/plugin.hpp>

namespace lagoon {

/// Causal attention of the last S of T positions, each over the keys of its window. One logit per
/// head, the sink, takes a share of the weight and contributes no value.
inline constexpr const char* kSchema =
    "lagoon.attention_swa_sink(out Tensor y[B, S, HQ, D], Tensor q[B, S, HQ, D], "
    "Tensor k[B, T, HKV, D], Tensor v[B, T, HKV, D], Tensor sink[HQ], int window = 0) "
    "where HQ % HKV == 0 && T >= S && window >= 0";

/// The arguments of one call; used by both kernels.
struct Problem {
  explicit Problem(const opmux::plugin::Call& call)
      : y(call.tensor(0)),
        q(call.tensor(1)),
        k(call.tensor(2)),
        v(call.tensor(3)),
        sink(call.tensor(4)),
        window(call.i64(5)) {}

  int64_t queries() const { return q.dim(0) * q.dim(1) * q.dim(2); }
  int64_t width() const { return q.dim(3); }
  double scale() const { return 1 / std::sqrt(static_cast<double>(width())); }

  opmux::plugin::TensorArg y, q, k, v, sink;
  int64_t window;  ///< keys a query sees, up to and including its position; 0 = no limit
};

/// The vectors of one head, `step` elements apart from one position to the next.
struct Rows {
  const float* first;
  int64_t step;
  const float* at(int64_t position) const { return first + position * step; }
};

/// One query and the keys and values that it sees, at positions [begin, end).
struct Query {
  Query(const Problem& problem, int64_t number)
      : head(number % problem.q.dim(2)),
        position(number / problem.q.dim(2) % problem.q.dim(1)),
        batch(number / problem.q.dim(2) / problem.q.dim(1)),
        end(problem.k.dim(1) - problem.q.dim(1) + position + 1),
        begin(problem.window == 0 ? 0 : std::max<int64_t>(0, end - problem.window)),
        q(element(problem.q, head, position)),
        y(element(problem.y, head, position)),
        sink(problem.sink.data<const float>()[head * problem.sink.stride(0)]) {
    const int64_t shared = head / (problem.q.dim(2) / problem.k.dim(2));
    keys = {element(problem.k, shared, 0), problem.k.stride(1)};
    values = {element(problem.v, shared, 0), problem.v.stride(1)};
  }

  float* element(const opmux::plugin::TensorArg& t, int64_t of_head, int64_t at) const {
    return t.data<float>() + batch * t.stride(0) + at * t.stride(1) + of_head * t.stride(2);
  }

  int64_t head, position, batch, end, begin;
  const float* q;
  float* y;
  float sink;
  Rows keys{}, values{};
};

/// The reference: two passes in f64.
void run_reference(const opmux::plugin::Call& call);
/// One pass over the window, rescaled as the maximum grows; queries are divided over the engine's
/// threads.
void run_online(const opmux::plugin::Call& call);

}  // namespace lagoon
