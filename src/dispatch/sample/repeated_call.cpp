#include "dispatch/sample/repeated_call.hpp"

#include "dispatch/call/attempt.hpp"
#include "dispatch/call/call_check.hpp"

namespace opmux::dispatch {

RepeatedCall::RepeatedCall(OperatorSlot& slot, const schema::Arguments& arguments, uint32_t tag)
    : slot_(slot) {
  signature_ = {slot.schema.get(), &arguments, &dims_, 0, tag, slot.ranks, 1};
}

Result<std::unique_ptr<RepeatedCall>> RepeatedCall::make(OperatorSlot& slot,
                                                         const schema::Arguments& arguments,
                                                         uint32_t tag) {
  std::unique_ptr<RepeatedCall> made(new RepeatedCall(slot, arguments, tag));
  if (Status status = made->decide(); !status.ok()) return status;
  return made;
}

Status RepeatedCall::decide() {
  if (mark_.depth() == kMaxDepth) return too_deep(slot_);
  CompiledOperator* const state = slot_.current.load(std::memory_order_acquire);
  if (state == nullptr) return withdrawn(slot_);
  const schema::Arguments& arguments = *signature_.arguments;
  signature_.schema = &state->schema();
  if (Status status = check_arguments(state->schema(), arguments, dims_); !status.ok())
    return status;
  if (Status status = check_data(state->schema(), arguments); !status.ok()) return status;
  const DecisionCache& space = space_of(slot_, *state, 0);
  const EvaluationInput& input = space.input();
  Evaluation decision;
  dispatch::decide(input, signature_, decision);
  has_rows_ = input.tuning != nullptr && !input.tuning->empty() &&
              input.tuning->answer(schema::FactsOf{signature_}) != 0;
  for (const uint16_t index : decision.order) {
    const CandidateVerdict& verdict = decision.verdicts[index];
    if (verdict.tier != decision.verdicts[decision.order[0]].tier) break;
    if (verdict.transforms.any()) continue;
    CandidateParts& part = parts_.emplace_back((*space.candidates())[index]);
    part.tap = nullptr;  // these runs are not sampled
  }
  if (!parts_.empty()) return {};
  return {Code::no_candidate, "dispatch.no_candidate", "no implementation accepts the call"};
}

Status RepeatedCall::run(size_t at) {
  StackFrame frame(*signature_.schema, *signature_.arguments,
                   {.tag = signature_.tag, .max_threads = 1});
  const Attempt tried = attempt({0, &parts_[at]}, signature_, frame);
  if (tried.left != 0) note_left(slot_, candidate(at), tried.left);
  if (tried.outcome == Code::ok) return {};
  return {tried.outcome, "call." + std::string(opmux::name_of(tried.outcome)), tried.text};
}

}  // namespace opmux::dispatch
