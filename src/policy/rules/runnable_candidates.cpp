#include "policy/rules/runnable_candidates.hpp"

namespace opmux::policy {

using registry::Reason;

RunnableCandidates::RunnableCandidates(const registry::OperatorRecord& op, registry::Probe probe)
    : op_(op), probe_(probe), answers_(op.implementations.size(), Answer::not_asked) {}

RunnableCandidates::Answer RunnableCandidates::ask(size_t candidate) {
  Answer& answer = answers_[candidate];
  if (answer != Answer::not_asked) return answer;
  const registry::ImplementationRecord& implementation = *op_.implementations[candidate];
  if (implementation.deferred) return answer = Answer::deferred;
  return answer = can_run(implementation, probe_) ? Answer::yes : Answer::no;
}

bool RunnableCandidates::any_outside(const CandidateSet& dropped) {
  // From the last one: they are sorted by id, so `reference` and `simd`, which have no probe, are
  // asked before most vendors.
  for (size_t i = answers_.size(); i-- > 0;) {
    if (!dropped[i] && ask(i) == Answer::yes) return true;
  }
  return false;
}

Left RunnableCandidates::left_by(const PolicyView& view) {
  if (view.nothing_left()) return Left::nothing;
  CandidateSet kept, all;
  for (size_t i = 0; i < view.drops.size(); ++i) {
    all.set(i);
    kept[i] = view.drops[i].reason == Reason::none;
  }
  if (any_outside(all & ~kept)) return Left::something;
  const auto any_deferred = [&](const CandidateSet& among) {
    for (size_t i = 0; i < answers_.size(); ++i) {
      if (among[i] && ask(i) == Answer::deferred) return true;
    }
    return false;
  };
  if (any_deferred(kept)) return Left::unknown;
  // If nothing can run under any policy, this policy is not the cause.
  if (any_outside(kept)) return Left::nothing;
  return any_deferred(all) ? Left::unknown : Left::something;
}

}  // namespace opmux::policy
