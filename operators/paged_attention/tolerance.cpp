#include "operators/common/tolerance/attention_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

std::vector<double> cached_vector(const Tensor& tensor, int64_t row, int64_t head) {
  const size_t rank = tensor.shape.size();
  const int64_t size = tensor.shape[rank - 1], heads = tensor.shape[rank - 2];
  const auto from = tensor.values.begin() + (row * heads + head) * size;
  return {from, from + size};
}

Query paged_query(const CallView& c, int64_t b, int64_t token, int64_t place, int64_t queries,
                  int64_t h) {
  const Tensor &q = c.tensor("q"), &k = c.tensor("k_cache"), &table = c.tensor("block_table");
  const int64_t group = q.shape[1] / k.shape[2], places = k.shape[1];
  Query query{.q = cached_vector(q, token, h), .k = {}, .v = {}, .mask = {}};
  if (c.has("sink")) query.sink = c.tensor("sink").values[static_cast<size_t>(h)];
  const auto keys = static_cast<int64_t>(c.tensor("seq_lens").values[static_cast<size_t>(b)]);
  for (int64_t j = 0; j < keys; ++j) {
    if (!sees(c, c.integer("causal", 1) != 0, place, queries, keys, j)) continue;
    const double block = table.values[static_cast<size_t>(b * table.shape[1] + j / places)];
    const int64_t row = static_cast<int64_t>(block) * places + j % places;
    query.k.push_back(cached_vector(k, row, h / group));
    query.v.push_back(cached_vector(c.tensor("v_cache"), row, h / group));
    query.mask.push_back(0);
  }
  return query;
}

void bound_paged_attention(const CallView& c, Expected& expected) {
  const std::vector<double>& start = c.tensor("query_start").values;
  const Tensor& y = c.tensor("y");
  double* bounds = expected.of(c, "y").bounds.data();
  for (size_t b = 0; b + 1 < start.size(); ++b) {
    const auto first = static_cast<int64_t>(start[b]), end = static_cast<int64_t>(start[b + 1]);
    for (int64_t token = first; token < end; ++token) {
      for (int64_t h = 0; h < y.shape[1]; ++h, bounds += y.shape[2]) {
        bound_query(c,
                    paged_query(c, static_cast<int64_t>(b), token, token - first, end - first, h),
                    c.tensor("v_cache").dtype, bounds);
      }
    }
  }
}

}  // namespace

Bounds paged_attention() { return {.op = "paged_attention", .bound = bound_paged_attention}; }

}  // namespace opmux::verify::operators
