#pragma once

#include <cmath>
#include <vector>

#include "conformance/element.hpp"
#include "conformance/shaper.hpp"

namespace opmux::conformance::operators {

/// Heads, head sizes and the numbers that both attentions have.
void shape_heads(Draft& draft);

/// Queries and keys whose products stay within what an exponential can take.
void fill_queries(Draft& draft, const std::string& queries, const std::string& keys);

/// One query and the keys of its head, as plain numbers.
struct Query {
  std::vector<double> q;               ///< by place
  std::vector<std::vector<double>> k;  ///< of the keys that it sees
  std::vector<std::vector<double>> v;
  std::vector<double> mask;  ///< added to the logit of each
  double sink = -INFINITY;
};

/// Which keys a query at `place` of `queries` sees, of `keys` in all.
bool sees(const Case& c, bool causal, int64_t place, int64_t queries, int64_t keys, int64_t key);

/// The bound of each place of the result. `values` is the dtype of v: weights may be rounded to it.
void bound_query(const Case& c, const Query& query, DType values, double* bounds);

}  // namespace opmux::conformance::operators
