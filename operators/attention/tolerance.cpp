#include "operators/common/tolerance/attention_error.hpp"
#include "verify/bounds.hpp"

namespace opmux::verify::operators {
namespace {

double mask_at(const CallView& c, std::vector<int64_t> index) {
  if (!c.has("mask")) return 0;
  const Tensor& mask = c.tensor("mask");
  index.erase(index.begin(), index.end() - static_cast<int64_t>(mask.shape.size()));
  int64_t at = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    at = at * mask.shape[i] + (mask.shape[i] == 1 ? 0 : index[i]);
  }
  const double value = mask.values[static_cast<size_t>(at)];
  return mask.dtype == boolean ? (value != 0 ? 0 : -INFINITY) : value;
}

/// The elements [b, row, head, :] of a four-dimensional tensor.
std::vector<double> vector_at(const Tensor& tensor, int64_t b, int64_t row, int64_t head) {
  const int64_t size = tensor.shape[3];
  const auto from =
      tensor.values.begin() + ((b * tensor.shape[1] + row) * tensor.shape[2] + head) * size;
  return {from, from + size};
}

Query query_at(const CallView& c, int64_t b, int64_t s, int64_t h) {
  const Tensor &q = c.tensor("q"), &k = c.tensor("k");
  const int64_t group = q.shape[2] / k.shape[2];
  Query query{.q = vector_at(q, b, s, h), .k = {}, .v = {}, .mask = {}};
  if (c.has("sink")) query.sink = c.tensor("sink").values[static_cast<size_t>(h)];
  for (int64_t t = 0; t < k.shape[1]; ++t) {
    const double mask = mask_at(c, {b, h, s, t});
    const bool causal = c.integer("causal", 0) != 0;
    if (mask == -INFINITY || !sees(c, causal, s, q.shape[1], k.shape[1], t)) continue;
    query.k.push_back(vector_at(k, b, t, h / group));
    query.v.push_back(vector_at(c.tensor("v"), b, t, h / group));
    query.mask.push_back(mask);
  }
  return query;
}

void bound_attention(const CallView& c, Expected& expected) {
  const Tensor& y = c.tensor("y");
  double* bounds = expected.of(c, "y").bounds.data();
  for (int64_t b = 0; b < y.shape[0]; ++b) {
    for (int64_t s = 0; s < y.shape[1]; ++s) {
      for (int64_t h = 0; h < y.shape[2]; ++h, bounds += y.shape[3]) {
        bound_query(c, query_at(c, b, s, h), c.tensor("v").dtype, bounds);
      }
    }
  }
}

}  // namespace

Bounds attention() { return {.op = "attention", .bound = bound_attention}; }

}  // namespace opmux::verify::operators
