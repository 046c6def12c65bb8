#include <array>

#include "problem.hpp"

namespace lagoon {
namespace {

inline constexpr int64_t kWidest = 256;

/// Running weighted mean of the values. It starts with the sink, which has weight 1 and no value.
struct Mean {
  explicit Mean(float sink) : most(sink) {}

  void add(float score, const float* value, int64_t width) {
    if (score > most) {
      rescale(std::exp(most - score), width);
      most = score;
    }
    const float weight = std::exp(score - most);
    sum += weight;
    for (int64_t i = 0; i < width; ++i) mixed[size_t(i)] += weight * value[i];
  }
  void rescale(float factor, int64_t width) {
    sum *= factor;
    for (int64_t i = 0; i < width; ++i) mixed[size_t(i)] *= factor;
  }

  float most, sum = 1;
  std::array<float, kWidest> mixed{};
};

void answer(const Query& query, int64_t width, float scale) {
  Mean mean(query.sink);
  for (int64_t t = query.begin; t < query.end; ++t) {
    const float* key = query.keys.at(t);
    float score = 0;
    for (int64_t i = 0; i < width; ++i) score += query.q[i] * key[i];
    mean.add(score * scale, query.values.at(t), width);
  }
  for (int64_t i = 0; i < width; ++i) query.y[i] = mean.mixed[size_t(i)] / mean.sum;
}

}  // namespace

void run_online(const opmux::plugin::Call& call) {
  const Problem problem(call);
  const auto scale = static_cast<float>(problem.scale());
  call.for_each(problem.queries(),
                [&](int64_t i) { answer(Query(problem, i), problem.width(), scale); });
}

}  // namespace lagoon
