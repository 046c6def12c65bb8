#pragma once

#include <cmath>
#include <vector>

#include "verify/bounds.hpp"
#include "verify/element.hpp"

namespace opmux::verify::operators {

/// One query and the keys of its head, as plain numbers.
struct Query {
  std::vector<double> q;               ///< by place
  std::vector<std::vector<double>> k;  ///< of the keys that it sees
  std::vector<std::vector<double>> v;
  std::vector<double> mask;  ///< added to the logit of each
  double sink = -INFINITY;
};

/// Which keys a query at `place` of `queries` sees, of `keys` in all.
bool sees(const CallView& c, bool causal, int64_t place, int64_t queries, int64_t keys,
          int64_t key);

/// The bound of each place of the result. `values` is the dtype of v: weights may be rounded to it.
void bound_query(const CallView& c, const Query& query, DType values, double* bounds);

}  // namespace opmux::verify::operators
