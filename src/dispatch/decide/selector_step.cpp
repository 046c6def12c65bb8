#include "dispatch/decide/selector_step.hpp"

#include <algorithm>
#include <exception>

#include "base/text.hpp"
#include "dispatch/decide/evaluation.hpp"
#include "policy/conditions/class_facts.hpp"

namespace opmux::dispatch {
namespace {

std::vector<SelectorFact> facts_for(const Selector& selector, const schema::Signature& signature) {
  std::vector<SelectorFact> facts;
  for (const std::string& name : selector.reads) {
    SelectorFact fact{name, std::nullopt, ""};
    const auto known = policy::find_fact(*signature.schema, name);
    const int64_t value = known ? schema::value_of(signature, *known) : schema::kAbsent;
    if (value != schema::kAbsent) {
      fact.number = value;
      fact.text = policy::value_text(*signature.schema, *known, value);
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

std::vector<Candidate> accepted_by(const Evaluation& decision) {
  std::vector<Candidate> accepted;
  for (const uint16_t index : decision.order) {
    const CandidateVerdict& verdict = decision.verdicts[index];
    accepted.push_back({verdict.implementation->id, "accepted", "", "",
                        verdict.implementation->priority, verdict.score, "", verdict.shown_hint()});
  }
  return accepted;
}

/// Calls the selector. If it throws or returns an invalid index, stores the problem and returns
/// nullopt.
std::optional<size_t> ask(const Selector& selector, const Selection& selection,
                          std::string& problem) {
  try {
    const std::optional<size_t> picked = selector.pick(selection);
    if (!picked || *picked < selection.accepted.size()) return picked;
    problem = base::concat(selector.name, " picked ", *picked, " of ", selection.accepted.size(),
                           " candidates");
  } catch (const std::exception& error) {
    problem = base::concat(selector.name, " failed: ", error.what());
  } catch (...) {
    problem = base::concat(selector.name, " failed");
  }
  return std::nullopt;
}

}  // namespace

void apply_selector(const Selector& selector, const schema::Signature& signature,
                    Evaluation& decision) {
  if (decision.order.empty()) return;
  const std::vector<Candidate> accepted = accepted_by(decision);
  const std::vector<SelectorFact> facts = facts_for(selector, signature);
  const auto picked =
      ask(selector, {signature.schema->name, accepted, facts}, decision.selector_problem);
  if (!picked) return;
  decision.picked = true;
  const auto at = decision.order.begin() + static_cast<ptrdiff_t>(*picked);
  std::rotate(decision.order.begin(), at, at + 1);
}

void add_dependencies(const Selector& selector, const schema::Schema& schema,
                      schema::Dependencies& into) {
  for (const std::string& name : selector.reads) {
    if (const auto fact = policy::find_fact(schema, name)) into.add(*fact);
  }
}

}  // namespace opmux::dispatch
