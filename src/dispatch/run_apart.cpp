#include "dispatch/run_apart.hpp"

#include "base/text.hpp"
#include "dispatch/attempt.hpp"
#include "dispatch/cold_mark.hpp"
#include "dispatch/engine.hpp"
#include "dispatch/slow_call.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;

/// True if the reference may run. Ignores policy rules that select among implementations, because
/// they apply only to calls of the program; rules that deny the reference count.
bool may_run(Reason reason) {
  return reason == Reason::none || reason == Reason::policy_outside_require ||
         reason == Reason::policy_outside_order || reason == Reason::policy_not_allowed;
}

Status no_reference(const OperatorSlot& slot, std::string_view why) {
  return {
      Code::no_candidate, "dispatch.no_reference",
      base::concat("no reference implementation of ", slot.name(), " can run this call: ", why)};
}

}  // namespace

Status run_reference(OperatorSlot& slot, const registry::Arguments& arguments, uint32_t tag) {
  const ColdMark mark;
  if (mark.depth() == kMaxDepth) return too_deep(slot);
  OperatorState* state = slot.current.load(std::memory_order_acquire);
  if (state == nullptr) return withdrawn(slot);
  registry::BoundDims dims;
  if (Status status = check_arguments(state->schema(), arguments, dims); !status.ok())
    return status;
  const registry::Signature signature{&state->schema(), &arguments, &dims, 0, tag};
  const DecisionSpace& space = space_of(slot, *state, 0);
  Decision decision;
  decide(space.input(), signature, decision);
  std::string why = "none is registered";
  for (size_t i = 0; i < decision.verdicts.size(); ++i) {
    const Verdict& verdict = decision.verdicts[i];
    if (verdict.implementation->kind != Kind::reference) continue;
    if (!may_run(verdict.reason) || verdict.transforms.any()) {
      why = describe(verdict, signature);
      continue;
    }
    StackFrame frame(state->schema(), arguments, {.tag = tag, .max_threads = 1});
    const PlanRecord plan{0, &(*space.candidates())[i]};
    const Attempt tried = attempt(slot, plan, signature, frame);
    if (tried.outcome == Code::ok) return {};
    return {tried.outcome, "call." + std::string(opmux::name_of(tried.outcome)), tried.text};
  }
  return no_reference(slot, why);
}

}  // namespace opmux::dispatch
