#pragma once

#include "question.hpp"

namespace opmux::property {

/// One voice of a policy that speaks about a call: a rule, an operator's own order, the rest.
struct Voice {
  size_t layer;
  Rule rule;
  Words allow_vendors, deny_vendors;
};

/// Whether a rule is about the operator: its name, and all that its condition names.
bool applies(const Rule& rule, const Schema& schema);
/// Whether a rule is for the operator alone and asks for something that it does not have.
bool asks_in_vain(const Policy& policy, const Schema& schema);
/// A policy without rules that are for the operator and ask for something that it does not have.
Policy without_vain_rules(Policy policy, const Schema& schema);
/// A policy without such of them as are for every operator: another one may be able to answer.
Policy without_vain_general_rules(Policy policy, const Schema& schema);
/// What of a policy is about the operator, as text.
std::string said_of(Policy policy, const Schema& schema);

/// What all policies together say about one call.
class Ruling {
 public:
  explicit Ruling(const Question& ask);
  /// As if of all conditions just that of one rule, or none, were true. The rule is one of `ask`'s.
  Ruling(const Question& ask, const Rule* assumed);
  Ruling(const Ruling&) = delete;
  Ruling& operator=(const Ruling&) = delete;

  bool strict() const;
  bool allows_none() const;
  /// A reason code, or nothing.
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
