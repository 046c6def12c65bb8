#include "policy/rules/policy_entry.hpp"

#include <algorithm>

#include "policy/rules/rule_fields.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {
namespace {

using Tokens = std::vector<std::string>;

/// Matches lists of tokens against the candidates of one operator.
class Matcher {
 public:
  explicit Matcher(const registry::OperatorRecord& op) {
    for (const registry::ImplementationPtr& impl : op.implementations) {
      subjects_.push_back({impl->id, impl->kind, impl->vendor});
    }
  }

  TierList tiers(const Tokens& texts) const {
    const std::vector<Token> tokens = parsed(texts);
    TierList list;
    for (const Subject& subject : subjects_) {
      const auto first = std::find_if(tokens.begin(), tokens.end(),
                                      [&](const Token& token) { return token.matches(subject); });
      if (first == tokens.end()) list.outside.push_back(next_of(list));
      list.tiers.push_back(static_cast<uint16_t>(first - tokens.begin()));
    }
    return list;
  }

  Indices inside(const Tokens& texts) const {
    const TierList list = tiers(texts);
    Indices all;
    for (size_t i = 0; i < list.tiers.size(); ++i) {
      if (list.tiers[i] < texts.size()) all.push_back(static_cast<uint16_t>(i));
    }
    return all;
  }

  std::optional<Indices> outside(const Tokens& texts) const {
    if (texts.empty()) return std::nullopt;
    return tiers(texts).outside;
  }

  /// Candidates of kind vendor whose vendor is, or is not, one of `names`.
  Indices vendors(const Tokens& names, bool listed) const {
    Indices all;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (subjects_[i].kind != Kind::vendor) continue;
      const bool found = std::find(names.begin(), names.end(), subjects_[i].vendor) != names.end();
      if (found == listed) all.push_back(static_cast<uint16_t>(i));
    }
    return all;
  }

 private:
  static std::vector<Token> parsed(const Tokens& texts) {
    std::vector<Token> tokens;
    for (const std::string& text : texts) {
      // Parsing succeeds, because validate() accepted the layer.
      if (auto token = Token::parse(text)) tokens.push_back(std::move(*token));
    }
    return tokens;
  }

  static uint16_t next_of(const TierList& list) { return static_cast<uint16_t>(list.tiers.size()); }

  std::vector<Subject> subjects_;
};

std::vector<CandidateBoost> boosts_of(const Matcher& matcher, const Rule& rule) {
  std::vector<CandidateBoost> all;
  for (const Boost& boost : rule.boost) {
    for (const uint16_t candidate : matcher.inside({boost.impl})) {
      all.push_back({candidate, boost.add, boost.multiply});
    }
  }
  return all;
}

void set_prefer(const Matcher& matcher, const Tokens& prefer, PolicyEntry& entry) {
  if (!prefer.empty()) entry.prefer = matcher.tiers(expand_prefer(prefer));
}

/// The rule as it applies after its last day.
Rule without_lapsed(Rule rule) {
  const Rule unset;
  for_each_rule_field([&](const auto& field) {
    if (lapses(field.role)) rule.*field.member = unset.*field.member;
  });
  return rule;
}

PolicyEntry rule_entry(const Matcher& matcher, const Rule& rule) {
  PolicyEntry entry;
  entry.denied = matcher.inside(rule.deny);
  entry.outside_require = matcher.outside(rule.require);
  entry.allow_none = rule.allow_none;
  set_prefer(matcher, rule.prefer, entry);
  if (!rule.order.empty()) entry.order = matcher.tiers(rule.order);
  entry.outside_allow = matcher.outside(rule.allow);
  entry.strict = rule.strict;
  entry.transforms = transform_bits(rule.transforms);
  entry.boosts = boosts_of(matcher, rule);
  return entry;
}

PolicyEntry general_entry(const Matcher& matcher, const Policy& policy) {
  PolicyEntry entry;
  set_prefer(matcher, policy.prefer, entry);
  entry.denied = matcher.inside(policy.deny);
  entry.vendor_denied = matcher.vendors(policy.deny_vendors, true);
  entry.outside_require = matcher.outside(policy.require);
  entry.outside_allow = matcher.outside(policy.allow);
  if (!policy.allow_vendors.empty()) {
    entry.outside_allow_vendors = matcher.vendors(policy.allow_vendors, false);
  }
  entry.strict = policy.strict;
  entry.transforms = transform_bits(policy.transforms);
  entry.allow_none = policy.allow_none;
  return entry;
}

/// Returns false if the rule's condition does not apply to the operator's schema.
bool add_condition(const Rule& rule, const registry::OperatorRecord& op, PolicyEntry& entry) {
  if (!rule.when) return true;
  entry.when = ConditionProgram::compile(*rule.when, *op.schema, nullptr,
                                         op.cpu == nullptr ? base::cpu_features() : *op.cpu);
  if (entry.when) entry.condition = rule.when->to_string();
  return entry.when.has_value();
}

}  // namespace

bool PolicyEntry::idle() const {
  return denied.empty() && vendor_denied.empty() && !outside_require && !outside_allow &&
         !outside_allow_vendors && !prefer && !order && !strict && !transforms && boosts.empty() &&
         !allow_none;
}

std::vector<PolicyEntry> entries_of(const PolicyLayer& layer, size_t strength,
                                    const registry::OperatorRecord& op) {
  const Matcher matcher(op);
  std::vector<PolicyEntry> entries;
  const auto keep = [&](PolicyEntry entry) {
    entry.layer = &layer;
    entry.strength = strength;
    if (!entry.idle()) entries.push_back(std::move(entry));
  };
  for (const Rule* rule : layer.rules_for(op.schema->name)) {
    PolicyEntry entry =
        rule->expired ? rule_entry(matcher, without_lapsed(*rule)) : rule_entry(matcher, *rule);
    entry.rule = rule;
    if (add_condition(*rule, op, entry)) keep(std::move(entry));
  }
  const auto order = layer.policy().per_op.find(op.schema->name);
  if (order != layer.policy().per_op.end()) {
    PolicyEntry entry;
    entry.order = matcher.tiers(order->second);
    keep(std::move(entry));
  }
  keep(general_entry(matcher, layer.policy()));
  return entries;
}

namespace {

bool any_matches(const std::vector<std::string>& tokens, const Subject& subject) {
  return std::ranges::any_of(tokens, [&](const std::string& text) {
    const Result<Token> token = Token::parse(text);
    return token && token->matches(subject);
  });
}

}  // namespace

bool denies(const PolicyLayer& layer, const Subject& subject) {
  const Policy& policy = layer.policy();
  if (any_matches(policy.deny, subject)) return true;
  if (subject.kind == Kind::vendor &&
      std::ranges::find(policy.deny_vendors, subject.vendor) != policy.deny_vendors.end()) {
    return true;
  }
  return std::ranges::any_of(policy.rules, [&](const Rule& rule) {
    return rule.op == "*" && !rule.when && any_matches(rule.deny, subject);
  });
}

}  // namespace opmux::policy
