#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

/// Random policies, and a plain model of what they leave.
namespace opmux::test {

/// An implementation of one of the drawn operators.
struct DrawnCandidate {
  std::string op, provider;
  bool vendor = false;
  std::string feature;  ///< the processor needs it; empty: none
  std::string id() const { return op + "/" + provider + ".x"; }
};

struct DrawnRule {
  std::string op, when;
  std::vector<std::string> deny, require, order, allow, prefer;
  int rank = 50;
  bool allow_none = false;
};

/// A policy file in random form.
struct DrawnPolicy {
  std::vector<DrawnRule> rules;
  std::vector<std::string> allow;  ///< of the defaults
  bool allow_none = false;         ///< of the defaults

  std::string text() const {
    const auto list = [](const char* key, const std::vector<std::string>& tokens) {
      std::string line;
      for (const std::string& each : tokens) line += (line.empty() ? "\"" : ", \"") + each + "\"";
      return tokens.empty() ? "" : std::string(", ") + key + ": [" + line + "]";
    };
    std::string made = "opmux: 1\n";
    if (allow_none || !allow.empty()) {
      made += "defaults: {strict: false" + list("allow", allow);
      made += (allow_none ? ", allow_none: true}\n" : "}\n");
    }
    made += "rules:\n";
    for (size_t i = 0; i < rules.size(); ++i) {
      const DrawnRule& rule = rules[i];
      made += "  - {name: r" + std::to_string(i) + ", op: \"" + rule.op +
              "\", rank: " + std::to_string(rule.rank) + ", strict: false";
      if (!rule.when.empty()) made += ", when: '" + rule.when + "'";
      made += list("deny", rule.deny) + list("require", rule.require) + list("order", rule.order) +
              list("allow", rule.allow) + list("prefer", rule.prefer);
      made += rule.allow_none ? ", allow_none: true}\n" : "}\n";
    }
    return made;
  }
  bool asks_for_features() const {
    return std::ranges::any_of(
        rules, [](const DrawnRule& rule) { return rule.when.find("cpu(") != rule.when.npos; });
  }
};

/// A machine: the features that its processor has.
using DrawnMachine = std::set<std::string>;

/// Draws operators, candidates and policies from a seed.
class PolicyDraw {
 public:
  PolicyDraw(uint32_t seed, std::vector<std::string> features)
      : random_(seed), features_(std::move(features)) {
    for (int op = 0; op < 4; ++op) {
      const std::string name = "drawn_" + std::to_string(op);
      operators.push_back(name);
      for (const char* provider : {"plain", "wide", "wider", "acme"}) {
        const bool plain = provider == std::string("plain");
        candidates.push_back(
            {name, provider, provider == std::string("acme"), plain ? "" : pick(features_)});
      }
    }
  }

  DrawnPolicy policy() {
    DrawnPolicy made;
    const size_t count = 1 + below(4);
    for (size_t i = 0; i < count; ++i) made.rules.push_back(rule());
    // The standard operators need their reference.
    if (chance(10)) (made.allow = tokens()).emplace_back("reference");
    made.allow_none = chance(5);
    return made;
  }

  std::vector<std::string> operators;
  std::vector<DrawnCandidate> candidates;

 private:
  size_t below(size_t end) { return random_() % end; }
  bool chance(size_t percent) { return below(100) < percent; }
  const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  DrawnRule rule() {
    DrawnRule made;
    made.op = chance(20) ? "drawn_*" : pick(operators);
    if (chance(50)) made.when = condition();
    if (chance(40)) made.deny = tokens();
    if (chance(10)) made.deny.push_back("*/absent.*");
    if (chance(30)) made.require = tokens();
    if (chance(20)) made.order = tokens();
    if (chance(15)) made.allow = tokens();
    if (chance(40)) made.prefer = tokens();
    if (chance(30)) made.rank = static_cast<int>(below(100));
    made.allow_none = chance(5);
    return made;
  }
  std::string condition() {
    const std::string feature = "cpu(\"" + pick(features_) + "\")";
    const std::vector<std::string> all{"H > 64", "H <= 64",     "rows > 4",
                                       feature,  "!" + feature, feature + " && H > 64"};
    return pick(all);
  }
  std::vector<std::string> tokens() {
    std::vector<std::string> all;
    for (size_t count = 1 + below(2); count > 0; --count) {
      const DrawnCandidate& one = candidates[below(candidates.size())];
      const std::vector<std::string> ways{"*/" + one.provider + ".*",
                                          "drawn_*/" + one.provider + ".x", "default", "vendor",
                                          "vendor:acme"};
      all.push_back(pick(ways));
    }
    return all;
  }

  std::mt19937 random_;
  std::vector<std::string> features_;
};

/// The candidates that a policy leaves of an operator, by the rules of docs/policy.md.
class PlainModel {
 public:
  PlainModel(const PolicyDraw& draw, const DrawnMachine& machine)
      : draw_(draw), machine_(machine) {}

  /// Whether a condition can be true on this machine, if calls decide about its other parts.
  bool possible(const std::string& when) const {
    const size_t at = when.find("cpu(\"");
    if (at == when.npos) return true;
    const std::string feature = when.substr(at + 5, when.find('"', at + 5) - at - 5);
    return machine_.contains(feature) != when.starts_with("!");
  }

  /// Whether a policy leaves an operator nothing that can run, for calls with no or one condition.
  bool starves(const DrawnPolicy& policy) const {
    return std::ranges::any_of(draw_.operators, [&](const std::string& op) {
      std::set<std::string> conditions{""};
      for (const DrawnRule& rule : policy.rules) {
        if (is_for(rule, op) && possible(rule.when)) conditions.insert(rule.when);
      }
      return std::ranges::any_of(conditions, [&](const std::string& when) {
        return left(policy, op, when).empty() && !may_be_empty(policy, op, when);
      });
    });
  }

  bool may_be_empty(const DrawnPolicy& policy, const std::string& op,
                    const std::string& when) const {
    return policy.allow_none || std::ranges::any_of(policy.rules, [&](const DrawnRule& rule) {
             return applies(rule, op, when) && rule.allow_none;
           });
  }

  /// The candidates that can run and may, where only `when` is true.
  std::set<std::string> left(const DrawnPolicy& policy, const std::string& op,
                             const std::string& when) const {
    std::vector<const DrawnRule*> rules;
    for (const DrawnRule& rule : policy.rules) {
      if (applies(rule, op, when)) rules.push_back(&rule);
    }
    std::ranges::sort(rules, [](const DrawnRule* a, const DrawnRule* b) {
      return a->rank != b->rank ? a->rank > b->rank : a < b;  // they are elements of one vector
    });
    const std::vector<std::string>*order = nullptr, *allow = nullptr;
    for (const DrawnRule* rule : rules) {
      if (order == nullptr && !rule->order.empty()) order = &rule->order;
      if (allow == nullptr && !rule->allow.empty()) allow = &rule->allow;
    }
    if (allow == nullptr && !policy.allow.empty()) allow = &policy.allow;
    std::set<std::string> ids;
    for (const DrawnCandidate& one : draw_.candidates) {
      if (one.op != op || (!one.feature.empty() && !machine_.contains(one.feature))) continue;
      bool may =
          (order == nullptr || listed(*order, one)) && (allow == nullptr || listed(*allow, one));
      for (const DrawnRule* rule : rules) {
        may = may && !listed(rule->deny, one) &&
              (rule->require.empty() || listed(rule->require, one));
      }
      if (may) ids.insert(one.id());
    }
    return ids;
  }

 private:
  static bool is_for(const DrawnRule& rule, const std::string& op) {
    return rule.op == op || rule.op == "drawn_*";
  }
  bool applies(const DrawnRule& rule, const std::string& op, const std::string& when) const {
    return is_for(rule, op) && (rule.when.empty() || rule.when == when);
  }
  static bool listed(const std::vector<std::string>& tokens, const DrawnCandidate& one) {
    return std::ranges::any_of(tokens, [&](const std::string& token) {
      if (token == "default") return !one.vendor;
      if (token == "vendor" || token == "vendor:acme") return one.vendor;
      return token.find("/" + one.provider + ".") != token.npos;
    });
  }

  const PolicyDraw& draw_;
  const DrawnMachine& machine_;
};

}  // namespace opmux::test
