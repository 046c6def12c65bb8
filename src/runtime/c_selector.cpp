#include <vector>

#include "runtime/c_error.hpp"
#include "runtime/c_handles.hpp"
#include "runtime/c_policy.hpp"

using opmux::Status;
using opmux::runtime::guarded;
using opmux::runtime::none_null;
using opmux::runtime::str_of;
using opmux::runtime::view_of;

namespace {

std::optional<size_t> ask(const opmux_selector& selector, const opmux::Selection& asked) {
  std::vector<opmux_str> accepted;
  for (const opmux::Candidate& each : asked.accepted) accepted.push_back(str_of(each.id));
  std::vector<opmux_selector_fact> facts;
  for (const opmux::SelectorFact& fact : asked.facts) {
    facts.push_back(
        {str_of(fact.name), str_of(fact.text), fact.number.value_or(0), fact.number ? 1 : 0});
  }
  const opmux_selection plain{sizeof(opmux_selection),
                              0,
                              str_of(asked.op),
                              accepted.data(),
                              accepted.size(),
                              facts.data(),
                              facts.size()};
  const int64_t picked = selector.pick(selector.context, &plain);
  if (picked < 0) return std::nullopt;
  return static_cast<size_t>(picked);
}

}  // namespace

int32_t opmux_selector_set(opmux_runtime* runtime, const opmux_selector* selector,
                           opmux_error* error) {
  return guarded(error, [&]() -> Status {
    if (Status bad = none_null("runtime", runtime); !bad.ok()) return bad;
    if (selector == nullptr) return runtime->cpp.reset_selector();
    opmux_selector from{};
    if (Status bad = opmux::runtime::read_sized(*selector, sizeof(from), "selector", from);
        !bad.ok()) {
      return bad;
    }
    auto reads = opmux::runtime::read_list(from.reads, "selector.reads");
    if (!reads) return reads.error();
    opmux::Selector made;
    if (from.name.size != 0) made.name = view_of(from.name);
    made.reads = *std::move(reads);
    if (from.pick != nullptr) {
      made.pick = [from](const opmux::Selection& asked) { return ask(from, asked); };
    }
    return runtime->cpp.set_selector(made);
  });
}
