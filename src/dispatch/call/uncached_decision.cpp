#include "dispatch/call/uncached_decision.hpp"

#include <string_view>

#include "base/text.hpp"
#include "dispatch/engine.hpp"

namespace opmux::dispatch {
namespace {

/// The cause of a decision that is not cached: a word and a clause.
struct Cause {
  std::string_view word, text;
};

Cause cause_of(Keeping keeping) {
  switch (keeping) {
    case Keeping::no_key:
      return {"lanes", "a class key cannot hold an element type with several lanes"};
    case Keeping::reads_more:
      return {"reads", "a verifier reads other facts when it is asked again about the same call"};
    case Keeping::outside:
      return {"outside", "a verifier reads something that is not a fact of the call"};
    default: return {"full", "as many decision classes as the limit allows are already cached"};
  }
}

void note_outside(const OperatorSlot& slot, const Decision& choice) {
  slot.engine->dependencies().log->tell(
      Level::warning, "dispatch.decided_each_time", slot.name(), choice.outside_of->id,
      choice.outside, [&] {
        return base::concat("its verifier reads ", choice.outside,
                            ", which is not a fact of the call, so that calls that ask it are "
                            "decided each time");
      });
}

}  // namespace

bool outgrown(const OperatorSlot& slot, const DecisionCache& space, Keeping keeping) {
  if (keeping == Keeping::reads_more) return true;
  if (keeping != Keeping::overfull) return false;
  slot.engine->dependencies().log->tell(
      Level::warning, "dispatch.classes_discarded", slot.name(), "", "", [&] {
        const DecisionCache::Crowding most = space.crowding();
        return base::concat("calls fall into more than ", ClassTable::kCapacity,
                            " decision classes, so that all of them are decided again; ",
                            most.asked_by == nullptr ? "a rule or the tuning" : most.asked_by->id,
                            " distinguishes ", most.values, " values of ",
                            schema::describe(*slot.schema, most.fact),
                            "; compare it with a few numbers instead");
      });
  return true;
}

void note_uncached(OperatorSlot& slot, const DecisionCache::Answer& answer, int states) {
  slot.decided_each_time.fetch_add(1, std::memory_order_relaxed);
  if (!answer.choice->plans.empty()) {
    ImplementationCounters& chosen = *answer.choice->plans.front().candidate->counters;
    chosen.decided_each_time.fetch_add(1, std::memory_order_relaxed);
  }
  // If the state could not be replaced because another thread was publishing, a later call does it.
  if (answer.keeping == Keeping::reads_more && states < kMostStates) return;
  if (answer.keeping == Keeping::outside) return note_outside(slot, *answer.choice);
  const Cause cause = cause_of(answer.keeping);
  const registry::ImplementationRecord* const by = answer.choice->reads_more;
  slot.engine->dependencies().log->tell(
      Level::warning, "dispatch.decided_each_time", slot.name(), by == nullptr ? "" : by->id,
      cause.word,
      [&] { return base::concat("some calls are decided each time, because ", cause.text); });
}

Status lockable(const OperatorSlot& slot, Keeping keeping) {
  if (keeping == Keeping::kept) return {};
  return {
      Code::unsupported, "lock.class",
      base::concat("this call of ", slot.name(), " cannot be locked: ", cause_of(keeping).text)};
}

}  // namespace opmux::dispatch
