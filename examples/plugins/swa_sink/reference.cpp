#include <vector>

#include "problem.hpp"

namespace lagoon {
namespace {

double product(const float* a, const float* b, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += double{a[i]} * b[i];
  return sum;
}

void answer(const Query& query, int64_t width, double scale) {
  std::vector<double> weights;
  double most = query.sink;
  for (int64_t t = query.begin; t < query.end; ++t) {
    weights.push_back(scale * product(query.q, query.keys.at(t), width));
    most = std::max(most, weights.back());
  }
  double sum = std::exp(query.sink - most);
  for (double& weight : weights) sum += weight = std::exp(weight - most);
  for (int64_t i = 0; i < width; ++i) {
    double mixed = 0;
    for (size_t t = 0; t < weights.size(); ++t) {
      mixed += weights[t] * query.values.at(query.begin + static_cast<int64_t>(t))[i];
    }
    query.y[i] = static_cast<float>(mixed / sum);
  }
}

}  // namespace

void run_reference(const opmux::plugin::Call& call) {
  const Problem problem(call);
  for (int64_t i = 0; i < problem.queries(); ++i) {
    answer(Query(problem, i), problem.width(), problem.scale());
  }
}

}  // namespace lagoon
