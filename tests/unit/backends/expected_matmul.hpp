// Matrix products in double, independent of the kernels. Shared by the tests of all backends.
#pragma once

#include <functional>

#include "expected.hpp"

namespace opmux::testing {

// One element of a product in f32: each term is rounded once, and once per addition.
inline Expected expected_dot(int64_t terms, const std::function<double(int64_t)>& a,
                             const std::function<double(int64_t)>& b, double added = 0) {
  double value = 0, magnitude = 0;
  for (int64_t k = 0; k < terms; ++k) {
    value += a(k) * b(k);
    magnitude += std::fabs(a(k) * b(k));
  }
  return {value + added, (pairwise_error(terms) + 2 * kEps) * (magnitude + std::fabs(added))};
}

inline std::vector<Expected> expected_matmul(const Tensor& a, const Tensor& b) {
  const int64_t height = a.dim(-2), depth = a.dim(-1), width = b.dim(-1);
  const int64_t batches = height * depth == 0 ? 1 : a.elements() / (height * depth);
  std::vector<Expected> result;
  for (int64_t i = 0; i < batches * height * width; ++i) {
    const int64_t row = i / width, batch = row / height, column = i % width;
    result.push_back(expected_dot(
        depth, [&](int64_t k) { return a.get(row * depth + k); },
        [&](int64_t k) { return b.get((batch * depth + k) * width + column); }));
  }
  return result;
}

inline std::vector<Expected> expected_linear(const Tensor& x, const Tensor& weight,
                                             const Tensor* bias) {
  const int64_t depth = weight.dim(1), width = weight.dim(0);
  std::vector<Expected> result;
  for (int64_t i = 0; i < x.elements() / depth * width; ++i) {
    const int64_t row = i / width * depth, column = i % width;
    result.push_back(expected_dot(
        depth, [&](int64_t k) { return x.get(row + k); },
        [&](int64_t k) { return weight.get(column * depth + k); }, bias ? bias->get(column) : 0));
  }
  return result;
}

}  // namespace opmux::testing
