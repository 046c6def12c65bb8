#include "conformance/shaper.hpp"
#include "operators/common/cases/indices.hpp"

namespace opmux::conformance::operators {
namespace {

void shape_reshape_and_cache(Draft& draft) {
  draft.specials(Specials::nan_and_infinity);
  draft.dim("NB") = draft.size(6);
  draft.dim("BS") = draft.size(16);
  draft.dim("HKV") = draft.size(4);
  draft.dim("D") = draft.size(100);
  draft.dim("DV") = draft.random().chance(70) ? draft.dim("D") : draft.size(100);
  draft.dim("T") = draft.size_or_none(40);
  draft.dtype("slots", draw_index_type(draft));
}

/// Slots in random order; some are skipped (-1), and occasionally one is used twice.
void fill_reshape_and_cache(Draft& draft) {
  Random& random = draft.random();
  const int64_t places = draft.dim("NB") * draft.dim("BS");
  std::vector<int64_t> order(static_cast<size_t>(places));
  for (int64_t i = 0; i < places; ++i) order[static_cast<size_t>(i)] = i;
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  std::vector<double>& slots = draft.tensor("slots").values;
  for (size_t t = 0; t < slots.size(); ++t) {
    const bool skipped = random.chance(8) || t >= order.size();
    slots[t] = skipped ? -1 : static_cast<double>(order[t]);
  }
  if (slots.size() > 1 && random.chance(10)) slots.back() = slots.front();
  spoil_index(draft, "slots", {places, places + 77});
}

}  // namespace

Shaper reshape_and_cache() {
  return {
      .op = "reshape_and_cache", .shape = shape_reshape_and_cache, .fill = fill_reshape_and_cache};
}

}  // namespace opmux::conformance::operators
