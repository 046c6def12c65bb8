#include "policy/rules/lint.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "policy/rules/rule_fields.hpp"
#include "policy/rules/rule_place.hpp"
#include "policy/rules/runnable_candidates.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {
namespace {

std::vector<std::string> ranked(const PolicyView& view, const OperatorPolicy& policy,
                                const registry::OperatorRecord& op, RunnableCandidates& runnable) {
  std::vector<std::tuple<uint16_t, double, size_t, uint16_t>> left;
  for (const uint16_t i : policy.by_priority()) {
    if (view.drops[i].reason != registry::Reason::none || !runnable[i]) continue;
    left.emplace_back(view.tiers[i], -view.scores[i], left.size(), i);
  }
  std::sort(left.begin(), left.end());
  std::vector<std::string> ids;
  for (const auto& each : left) ids.push_back(op.implementations[std::get<3>(each)]->id);
  return ids;
}

/// The origin of the list that ranks candidates or, without one, of the first drop.
std::string author_of(const PolicyView& view) {
  if (view.has_list) return describe(view.list_by);
  for (const PolicyView::Drop& drop : view.drops) {
    if (drop.reason != registry::Reason::none) return describe(drop.by);
  }
  return {};
}

}  // namespace

Effect effect_of(const OperatorPolicy& policy, const registry::OperatorRecord& op,
                 RunnableCandidates& runnable, std::string when) {
  Effect effect{std::move(when), {}, {}, {}};
  policy.assume(effect.when, effect.view);
  effect.order = ranked(effect.view, policy, op, runnable);
  effect.by = author_of(effect.view);
  return effect;
}

std::string describe_drops(const PolicyView& view, const registry::OperatorRecord& op,
                           registry::Probe probe) {
  std::vector<std::string> parts;
  std::set<std::string> told;
  for (size_t i = 0; i < view.drops.size(); ++i) {
    const PolicyView::Drop& drop = view.drops[i];
    const registry::ImplementationRecord& implementation = *op.implementations[i];
    if (drop.reason == registry::Reason::none) {
      if (implementation.deferred) continue;
      if (std::string why; obstacle_to_run(implementation, why, probe) != registry::Reason::none)
        parts.push_back(base::concat(implementation.id, " cannot run here: ", why));
    } else if (told.insert(describe(drop.by)).second) {
      parts.push_back(
          base::concat(implementation.id, " is ", code_of(drop.reason), " by ", describe(drop.by)));
    }
  }
  for (const Origin& require : view.requires_by) {
    if (told.insert(describe(require)).second) {
      parts.push_back(base::concat("everything required by ", describe(require), " is denied"));
    }
  }
  return base::join(parts, "; ");
}

namespace {

using Tokens = std::vector<std::string>;

template <class Visit>
void for_each_token(const Rule& rule, const Visit& visit) {
  for_each_rule_field([&](const auto& field) {
    if (field.form != Form::tokens) return;
    if constexpr (std::is_same_v<decltype(rule.*field.member), const Tokens&>) {
      for (const std::string& token : rule.*field.member) visit(field.key, token);
    }
  });
  for (const Boost& boost : rule.boost) visit("boost", boost.impl);
  if (rule.breaker && !rule.impl.empty()) visit("impl", rule.impl);
}

}  // namespace

PresentNames::PresentNames(const registry::RegistrySnapshot& known) {
  for (const auto& [name, op] : known.operators) {
    for (const registry::ImplementationPtr& impl : op->implementations) {
      present_.push_back({name, {impl->id, impl->kind, impl->vendor}});
    }
  }
}

bool PresentNames::matches(std::string_view op, const std::string& token) {
  if (token.find_first_of("/:") == token.npos) return true;
  const auto [at, added] = known_.try_emplace(base::concat(op, " ", token), false);
  if (!added) return at->second;
  const auto parsed = Token::parse(token);
  if (!parsed) return at->second;
  const bool one = op.find('*') == op.npos;
  auto first = present_.begin(), last = present_.end();
  if (one) {
    std::tie(first, last) =
        std::equal_range(first, last, Present{op, {}},
                         [](const Present& a, const Present& b) { return a.op < b.op; });
  }
  return at->second = std::any_of(first, last, [&](const Present& present) {
           return parsed->matches(present.subject) && (one || glob_match(op, present.op));
         });
}

namespace {

/// Whether each part of two names, between '/', '.' and ':', is equal or a likely typo.
/// Whole names have so many letters in common that each would be near.
bool looks_like(std::string_view a, std::string_view b) {
  const auto cut = [](std::string_view& name) {
    const size_t end = std::min(name.find_first_of("/.:"), name.size());
    const std::string_view part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    return part;
  };
  while (!a.empty() || !b.empty()) {
    const std::string_view one = cut(a), other = cut(b);
    if (one != other && base::nearest(one, std::span(&other, 1)).empty()) return false;
  }
  return true;
}

}  // namespace

std::string PresentNames::suggestion(std::string_view op, const std::string& token) {
  constexpr std::string_view kImpl = "impl:", kVendor = "vendor:";
  constexpr int kMost = 64;
  if (++suggestions_ > kMost) return {};
  std::set<std::string> near;
  for (const Present& present : present_) {
    if (!glob_match(op, present.op)) continue;
    const std::string id(present.subject.id);
    if (token.starts_with(kVendor)) {
      if (!present.subject.vendor.empty())
        near.insert(base::concat(kVendor, present.subject.vendor));
    } else if (token.starts_with(kImpl)) {
      near.insert(base::concat(kImpl, id));
    } else if (token.find('*') == token.npos) {
      near.insert(id);
    } else {
      // The pattern of the token, with the parts of this implementation in place of its names.
      const size_t slash = id.find('/'), dot = id.rfind('.');
      const std::string provider = id.substr(slash + 1, dot - slash - 1);
      near.insert({base::concat(present.op, "/", provider, ".*"),
                   base::concat("*/", provider, ".*"), base::concat("*/*", id.substr(dot))});
    }
  }
  std::vector<std::string> names(near.begin(), near.end());
  std::erase_if(names, [&](const std::string& name) { return !looks_like(token, name); });
  return base::suggestion(token, names);
}

std::vector<Unmatched> unmatched_of(const Policy& policy, const registry::RegistrySnapshot& known) {
  PresentNames names(known);
  std::vector<Unmatched> all;
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    for_each_token(policy.rules[i], [&](std::string_view field, const std::string& token) {
      if (!names.matches(policy.rules[i].op, token)) all.push_back({i, field, token});
    });
  }
  return all;
}

Status check_strict_names(const Policy& policy, const registry::RegistrySnapshot& known) {
  if (!policy.strict_names) return {};
  PresentNames names(known);
  Status found;
  const auto check = [&](const std::string& place, std::string_view op, std::string_view field,
                         const std::string& token) {
    if (!found.ok() || field == "deny" || names.matches(op, token)) return;
    const std::string hint = names.suggestion(op, token);
    found = {Code::invalid_argument, "policy.unmatched",
             base::concat(place, field, ": no registered implementation matches '", token,
                          "', which strict_names requires",
                          hint.empty() ? "; `opmux list` shows the registered ones" : hint)};
  };
  for (const std::string& token : policy.prefer) check("", "*", "prefer", token);
  for (const std::string& token : policy.require) check("", "*", "require", token);
  for (const std::string& token : policy.allow) check("", "*", "allow", token);
  for (const auto& [op, order] : policy.per_op) {
    for (const std::string& token : order) check("", op, base::concat("per_op ", op), token);
  }
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const Rule& rule = policy.rules[i];
    for_each_token(rule, [&](std::string_view field, const std::string& token) {
      check(place_of_rule(rule, i), rule.op, field, token);
    });
  }
  return found;
}

std::vector<const Rule*> unmatched_rules(const Policy& policy,
                                         const registry::RegistrySnapshot& known) {
  PresentNames names(known);
  std::vector<const Rule*> all;
  for (const Rule& rule : policy.rules) {
    size_t tokens = 0, matched = 0;
    for_each_token(rule, [&](std::string_view, const std::string& token) {
      ++tokens;
      if (names.matches(rule.op, token)) ++matched;
    });
    if (tokens > 0 && matched == 0) all.push_back(&rule);
  }
  return all;
}

namespace {

std::string title_of(const Rule& rule) {
  const std::string place = rule.where.empty() ? "" : base::concat(" (", rule.where, ")");
  return rule.name.empty() ? base::concat("the rule", place)
                           : base::concat("\"", rule.name, "\"", place);
}

/// Whether the pattern `one` matches every operator that `other` matches.
bool covers(const std::string& one, const std::string& other) {
  return one == other || one == "*" || (other.find('*') == other.npos && glob_match(one, other));
}

/// Whether `stronger` applies to every call that `weaker` applies to.
bool always_with(const Rule& stronger, const Rule& weaker) {
  if (!covers(stronger.op, weaker.op)) return false;
  return !stronger.when || (weaker.when && stronger.when->to_string() == weaker.when->to_string());
}

class Linter {
 public:
  Linter(const Policy& policy, const registry::RegistrySnapshot& known)
      : policy_(policy), known_(known) {
    for (const Rule& rule : policy.rules) {
      sorted_.push_back(&rule);
      if (!rule.deny.empty() && !rule.when) denying_.push_back(&rule);
    }
    std::sort(sorted_.begin(), sorted_.end(), [](const Rule* a, const Rule* b) {
      return a->rank != b->rank ? a->rank > b->rank : a < b;
    });
  }

  std::vector<Finding> run() {
    find_unmatched();
    find_shadowed();
    for (const Rule& rule : policy_.rules) find_contradictions(rule);
    find_others();
    std::vector<Finding> sorted;
    for (auto& [position, finding] : findings_) sorted.push_back(std::move(finding));
    return sorted;
  }

 private:
  void find(const Rule& rule, std::string_view code, std::string text) {
    findings_.emplace(&rule - policy_.rules.data(),
                      Finding{std::string(code), rule.where, rule.name, std::move(text)});
  }

  void find_unmatched() {
    PresentNames names(known_);
    for (const Unmatched& one : unmatched_of(policy_, known_)) {
      const Rule& rule = policy_.rules[one.rule];
      find(rule, "policy.unmatched",
           base::concat(one.field, ": no registered implementation matches '", one.token, "'",
                        rule.op == "*" ? "" : base::concat(" for ", rule.op),
                        names.suggestion(rule.op, one.token)));
    }
  }

  /// Finds ordering fields that a stronger rule always sets.
  void find_shadowed() {
    for_each_rule_field([&](const auto& field) {
      if (field.role != Role::ordering) return;
      std::vector<const Rule*> stronger;
      for (const Rule* rule : sorted_) {
        if (!is_set(field, *rule) || rule->expired) continue;
        const auto by = std::find_if(stronger.begin(), stronger.end(), [&](const Rule* one) {
          return always_with(*one, *rule) && (field.key != "breaker" || one->impl == rule->impl);
        });
        if (by != stronger.end()) {
          find(*rule, "policy.shadowed",
               base::concat(field.key, ": never takes effect, because ", title_of(**by),
                            " sets it for all of these calls"));
        } else {
          stronger.push_back(rule);
        }
      }
    });
  }

  /// A rule that denies implementations matching a token, if all of them are denied; else null.
  const Rule* denier_of(const Rule& rule, const std::string& text) const {
    const auto token = Token::parse(text);
    if (!token) return nullptr;
    const Rule* denier = nullptr;
    const bool free = any_operator_of(rule.op, known_, [&](const auto& name, const auto& op) {
      for (const registry::ImplementationPtr& impl : op.implementations) {
        const Subject subject{impl->id, impl->kind, impl->vendor};
        if (!token->matches(subject)) continue;
        const Rule* by = denier_of(rule, name, subject);
        if (by == nullptr) return true;
        denier = by;
      }
      return false;
    });
    return free ? nullptr : denier;
  }

  const Rule* denier_of(const Rule& rule, const std::string& op, const Subject& subject) const {
    for (const Rule* denying : denying_) {
      if (denying == &rule || !glob_match(denying->op, op)) continue;
      for (const std::string& text : denying->deny) {
        const auto token = Token::parse(text);
        if (token && token->matches(subject)) return denying;
      }
    }
    return nullptr;
  }

  void find_contradictions(const Rule& rule) {
    if (denying_.empty()) return;
    for_each_token(rule, [&](std::string_view field, const std::string& token) {
      if (field == "deny" || field == "impl") return;
      if (const Rule* by = denier_of(rule, token)) {
        find(rule, "policy.contradiction",
             base::concat(field, ": everything that '", token, "' matches is denied by ",
                          title_of(*by)));
      }
    });
  }

  void find_others() {
    std::map<std::string, const Rule*> names;
    for (const Rule& rule : policy_.rules) {
      if (rule.expired) {
        find(rule, "policy.expired",
             base::concat(
                 "expired at the end of ", rule.expires,
                 "; its deny and require remain in force, its other fields no longer apply"));
      }
      if (rule.breaker && rule.when) {
        find(rule, "policy.unread",
             "breaker: has no effect in a rule with `when`; move it to a rule without one");
      }
      if (rule.name.empty()) continue;
      const auto [first, added] = names.emplace(rule.name, &rule);
      if (!added) {
        find(rule, "policy.duplicate_name",
             base::concat("has the same name as ", title_of(*first->second)));
      }
    }
  }

  const Policy& policy_;
  const registry::RegistrySnapshot& known_;
  std::vector<const Rule*> sorted_, denying_;
  std::multimap<std::ptrdiff_t, Finding>
      findings_;  ///< by position of the rule, then in the order found
};

}  // namespace

std::vector<Finding> lint(const Policy& policy, const registry::RegistrySnapshot& known) {
  return Linter(policy, known).run();
}

}  // namespace opmux::policy
