#include <cmath>

#include "conformance/shaper.hpp"
#include "operators/common/cases/heads.hpp"

namespace opmux::conformance::operators {
namespace {

/// Shape of the mask: trailing dimensions of [B, HQ, S, T], each either full or 1.
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

/// Larger cases are prompts, because some implementations accept only blocks of queries.
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

}  // namespace

Shaper attention() {
  return {.op = "attention", .shape = shape_attention, .fill = fill_attention, .batch = "B"};
}

}  // namespace opmux::conformance::operators
