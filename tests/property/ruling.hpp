#pragma once

#include "question.hpp"

namespace opmux::property {

/// One part of a policy that applies to a call: a rule, the per-operator order, or the rest.
struct Voice {
  size_t layer;
  Rule rule;
  Words allow_vendors, deny_vendors;
};

/// Whether a rule applies to the operator: its name matches, and the operator has everything that
/// the condition names.
bool applies(const Rule& rule, const Schema& schema);
/// Whether a rule for this operator names something that the operator does not have.
bool asks_in_vain(const Policy& policy, const Schema& schema);
/// A policy without rules for this operator that name something it does not have.
Policy without_vain_rules(Policy policy, const Schema& schema);
/// A policy without such rules for all operators, because another operator may have what they name.
Policy without_vain_general_rules(Policy policy, const Schema& schema);
/// The part of a policy that concerns the operator, as text.
std::string said_of(Policy policy, const Schema& schema);

/// The combined effect of all policies on one call.
class Ruling {
 public:
  explicit Ruling(const Question& ask);
  /// As if only the condition of one rule, or none, were true. The rule is one of `ask`'s.
  Ruling(const Question& ask, const Rule* assumed);
  Ruling(const Ruling&) = delete;
  Ruling& operator=(const Ruling&) = delete;

  bool strict() const;
  bool allows_none() const;
  /// A reason code, or empty.
  std::string refusal(const Candidate& candidate, const Backend& backend) const;
  size_t tier(const Candidate& candidate, const Backend& backend) const;
  double score(const Candidate& candidate, const Backend& backend, int priority) const;

 private:
  explicit Ruling(std::vector<Voice> voices);

  std::vector<Voice> voices_;  ///< strongest first
  const Voice* order_;
  const Voice* prefer_;
  const Voice* allow_;
  const Voice* allow_vendors_;
  Words tiers_;
};

}  // namespace opmux::property
