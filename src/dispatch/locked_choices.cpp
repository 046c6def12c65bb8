#include "dispatch/locked_choices.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "dispatch/decision.hpp"

namespace opmux::dispatch {
namespace {

using registry::Reason;

bool by_scope(const policy::Origin& origin) {
  return origin.layer != nullptr && origin.layer->source() == policy::Source::scope;
}

LockVerdict verdict_on(const LockedClass* locked, Decision& decision) {
  if (locked == nullptr) return LockVerdict::unknown_class;
  const auto at = std::ranges::find_if(decision.verdicts, [&](const Verdict& verdict) {
    return verdict.implementation->id == locked->implementation;
  });
  if (at == decision.verdicts.end()) return LockVerdict::refused;
  if (!at->accepted()) return by_scope(at->by) ? LockVerdict::overruled : LockVerdict::refused;
  const auto index = static_cast<uint16_t>(at - decision.verdicts.begin());
  const auto place = std::ranges::find(decision.order, index);
  if (place != decision.order.begin() && decision.policy.has_list &&
      by_scope(decision.policy.list_by)) {
    return LockVerdict::overruled;
  }
  std::rotate(decision.order.begin(), place, place + 1);
  decision.rests.reset();  // the locked implementation is the winner regardless of open breakers
  return LockVerdict::kept;
}

}  // namespace

const LockedClasses* LockSet::of(std::string_view op) const {
  const auto found = by_op.find(op);
  return found == by_op.end() ? nullptr : &found->second;
}

void apply_lock(const LockSet& lock, const registry::Signature& signature, Decision& decision) {
  const LockedClasses* const classes = lock.of(signature.schema->name);
  decision.locked = classes == nullptr ? nullptr : classes->find(signature);
  decision.lock = verdict_on(decision.locked, decision);
  const bool deviates =
      decision.lock == LockVerdict::unknown_class || decision.lock == LockVerdict::refused;
  if (!deviates || !decision.policy.strict) return;
  for (const uint16_t index : decision.order) {
    Verdict& verdict = decision.verdicts[index];
    verdict.reason = Reason::lock_deviation;
    verdict.text = base::concat("it is not locked by ", lock.name,
                                " for this call, and strict allows no other");
  }
  decision.order.clear();
}

std::string describe_deviation(const LockSet& lock, const Decision& decision,
                               const registry::Signature& signature) {
  if (decision.lock == LockVerdict::unknown_class) {
    return base::concat(lock.name, " has no entry for this call of ", signature.schema->name);
  }
  if (decision.lock != LockVerdict::refused) return {};
  const std::string& id = decision.locked->implementation;
  const auto at = std::ranges::find_if(
      decision.verdicts, [&](const Verdict& verdict) { return verdict.implementation->id == id; });
  if (at == decision.verdicts.end())
    return base::concat(lock.name, " locks ", id, ", which is not registered");
  return base::concat(lock.name, " locks ", id, ", which is refused: ", code_of(at->reason), " ",
                      describe(*at, signature));
}

Status no_deviation(std::string_view why, LockVerdict verdict) {
  const std::string_view help = verdict == LockVerdict::unknown_class
                                    ? "add the call to the lock (`opmux lock`)"
                                    : "make it usable again, lock another (`opmux lock`)";
  return {Code::frozen, "lock.deviation",
          base::concat(why, "; the runtime is frozen, and strict allows no other: ", help,
                       ", or call without strict")};
}

}  // namespace opmux::dispatch
