#pragma once

#include <cmath>
#include <vector>

#include "verify/bounds.hpp"

namespace opmux::verify::operators {

/// One query vector and the keys and values of its head that are not masked.
struct Query {
  std::vector<double> q;
  std::vector<std::vector<double>> k;  ///< the keys that the query attends to
  std::vector<std::vector<double>> v;  ///< the value of each key
  std::vector<double> mask;            ///< added to the logit of each key
  double sink = -INFINITY;
};

/// True if query number `place` of `queries` attends to key number `key` of `keys`, by the causal
/// mask and the window.
bool sees(const CallView& c, bool causal, int64_t place, int64_t queries, int64_t keys,
          int64_t key);

/// Adds the bound of each element of the result. `values` is the dtype of v, to which
/// implementations may round the weights.
void bound_query(const CallView& c, const Query& query, DType values, double* bounds);

}  // namespace opmux::verify::operators
