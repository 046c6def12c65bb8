#include "conformance/operators/attention_error.hpp"
#include "conformance/operators/shapers.hpp"

namespace opmux::conformance::operators {
namespace {

/// Aligned with the last of [B, HQ, S, T]; every dimension is whole or one.
void shape_mask(Draft& draft) {
  Random& random = draft.random();
  draft.present("mask", random.chance(40));
  const std::vector<int64_t> whole = {draft.dim("B"), draft.dim("HQ"), draft.dim("S"),
                                      draft.dim("T")};
  std::vector<int64_t> shape(whole.end() - random.between(1, 4), whole.end());
  for (int64_t& size : shape) size = random.chance(30) ? 1 : size;
  draft.shape("mask", shape);
  if (random.chance(50)) draft.dtype("mask", boolean);
}

/// Larger cases are prompts: some code takes only those, a block of queries at a time.
void shape_attention(Draft& draft) {
  shape_heads(draft);
  const bool large = draft.budget() > 16384, prompt = draft.budget() > 2048;
  const int64_t queries = large ? 150 : prompt ? 40 : 9, keys = large ? 300 : 40;
  draft.dim("B") = draft.size_or_none(large ? 1 : 3);
  draft.dim("S") = draft.size_or_none(queries);
  draft.dim("T") = draft.random().chance(25) ? draft.dim("S") : draft.size_or_none(keys);
  shape_mask(draft);
}

void fill_attention(Draft& draft) {
  fill_queries(draft, "q", "k");
  Random& random = draft.random();
  if (draft.has("mask")) {
    CaseTensor& mask = draft.tensor("mask");
    for (double& value : mask.values) {
      const bool hidden = random.chance(30);
      value = mask.dtype == boolean ? (hidden ? 0 : 1) : (hidden ? -INFINITY : random.normal());
    }
  }
  if (random.chance(2)) {
    draft.set("softcap", random.pick({-1.0, static_cast<double>(INFINITY)}));
    draft.make_invalid();
  }
}

double mask_at(const Case& c, std::vector<int64_t> index) {
  if (!c.has("mask")) return 0;
  const CaseTensor& mask = c.tensor("mask");
  index.erase(index.begin(), index.end() - static_cast<int64_t>(mask.shape.size()));
  int64_t at = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    at = at * mask.shape[i] + (mask.shape[i] == 1 ? 0 : index[i]);
  }
  const double value = mask.values[static_cast<size_t>(at)];
  return mask.dtype == boolean ? (value != 0 ? 0 : -INFINITY) : value;
}

/// The elements of [b, row, head] of a tensor of four dimensions.
std::vector<double> vector_at(const CaseTensor& tensor, int64_t b, int64_t row, int64_t head) {
  const int64_t size = tensor.shape[3];
  const auto from =
      tensor.values.begin() + ((b * tensor.shape[1] + row) * tensor.shape[2] + head) * size;
  return {from, from + size};
}

Query query_at(const Case& c, int64_t b, int64_t s, int64_t h) {
  const CaseTensor &q = c.tensor("q"), &k = c.tensor("k");
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

void bound_attention(const Case& c, Expected& expected) {
  const CaseTensor& y = c.tensor("y");
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

Shaper attention() {
  return {.op = "attention",
          .shape = shape_attention,
          .fill = fill_attention,
          .bound = bound_attention,
          .batch = "B"};
}

}  // namespace opmux::conformance::operators
