#include "policy/files/policy_reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "policy/conditions/condition_program.hpp"
#include "policy/files/policy_values.hpp"
#include "policy/files/yaml_reader.hpp"
#include "policy/rules/lint.hpp"
#include "policy/rules/rule_fields.hpp"
#include "policy/rules/token.hpp"
#include "policy/rules/unknown_operators.hpp"
#include "schema/expressions/expression.hpp"

namespace opmux::policy {
namespace {

constexpr size_t kMostRules = 20'000;

std::vector<std::string_view> keys_with_effect() {
  std::vector<std::string_view> keys;
  for_each_rule_field([&](const auto& field) {
    if (field.role != Role::about) keys.push_back(field.key);
  });
  return keys;
}

/// Adds a problem for each token that matches no implementation of the operators that `op` matches.
/// `names` is null if tokens need not match.
void check_names(const ReadContext& context, const ValueReader& values, std::string_view op,
                 PresentNames* names) {
  if (names == nullptr) return;
  for (const ValueReader::TokenPlace& place : values.token_places()) {
    const bool deny = place.field == "deny";
    if (deny && context.names != Names::strict_with_deny) continue;
    if (names->matches(op, place.token)) continue;
    const std::string hint = names->suggestion(op, place.token);
    context.problems.add(
        place.at, "policy.unmatched",
        base::concat(place.field, ": no registered implementation matches '", place.token,
                     "', which ", deny ? "a strict check" : "names: strict", " requires",
                     hint.empty() ? "; `opmux list` shows the registered ones" : hint));
  }
}

/// Reads one rule.
class RuleReader {
 public:
  RuleReader(const ReadContext& context, PresentNames* names)
      : context_(context), values_(context.problems), names_(names) {}

  Rule read(const TextNode& node) {
    rule_.where = base::concat(context_.name, ":", node.at.line);
    if (!read_map(node, "a rule", fields(), context_.problems)) return std::move(rule_);
    name_boosts(node);
    if (rule_.when && context_.known != nullptr) check_condition();
    check_names(context_, values_, rule_.op, names_);
    if (!has_effect_) {
      values_.refuse(node, "policy.rule",
                     base::concat("this rule has no effect: it needs at least one of ",
                                  base::join(keys_with_effect(), ", ")));
    }
    return std::move(rule_);
  }

 private:
  std::vector<Field> fields() {
    std::vector<Field> all;
    for_each_rule_field([&](const auto& field) {
      if (!field.in_files) return;
      all.push_back({field.key, [this, &field](const TextNode& value) {
                       read_value(value, field, rule_.*field.member);
                       if (field.role != Role::about) note_effect(rule_.*field.member);
                     }});
    });
    return all;
  }

  /// A list or a flag counts even if it is invalid, an optional value only if it was read.
  template <class T>
  void note_effect(const T& value) {
    if constexpr (requires { value.has_value(); }) {
      has_effect_ = has_effect_ || value.has_value();
    } else {
      has_effect_ = true;
    }
  }

  void read_value(const TextNode& node, const RuleField<std::string>& field, std::string& into) {
    switch (field.form) {
      case Form::op: return read_operator(node);
      case Form::token: return values_.token(node, field.key, into);
      case Form::date: return values_.date(node, field.key, into);
      default: return values_.text(node, field.key, into);
    }
  }

  void read_value(const TextNode& node, const RuleField<std::vector<std::string>>& field,
                  std::vector<std::string>& into) {
    if (field.form == Form::transforms) return values_.transforms(node, into);
    values_.tokens(node, field.key, into);
  }

  template <class T>
  void read_value(const TextNode& node, const RuleField<std::optional<T>>& field,
                  std::optional<T>& into) {
    if constexpr (std::is_same_v<T, Condition>) {
      read_condition(node);
    } else if constexpr (std::is_same_v<T, BreakerOptions>) {
      values_.breaker(node, into.emplace());
    } else {
      read_scalar(node, field, into);
    }
  }

  void read_value(const TextNode& node, const RuleField<std::vector<Boost>>&, std::vector<Boost>&) {
    read_boosts(node);
  }

  template <class T>
  void read_value(const TextNode& node, const RuleField<T>& field, T& into) {
    std::optional<T> value;
    read_scalar(node, field, value);
    into = value.value_or(into);
  }

  template <class T>
  void read_scalar(const TextNode& node, const RuleField<T>& field, std::optional<bool>& into) {
    values_.boolean(node, field.key, into);
  }

  template <class T>
  void read_scalar(const TextNode& node, const RuleField<T>& field, std::optional<int>& into) {
    values_.integer(node, field.key, field.least, field.most, into);
  }

  void read_operator(const TextNode& node) {
    values_.text(node, "op", rule_.op);
    if (!node.is(TextNode::Kind::scalar) || rule_.op != node.text) return;
    if (!valid_operator_pattern(rule_.op)) {
      return values_.refuse(node, "policy.op",
                            base::concat("op: '", rule_.op,
                                         "' is neither an operator's name nor a pattern for "
                                         "operators such as \"*_norm\""));
    }
    const std::string why = context_.known == nullptr ? "" : why_unknown(rule_.op, *context_.known);
    if (!why.empty()) values_.refuse(node, "policy.op", "op: " + why);
  }

  void read_condition(const TextNode& node) {
    std::string text;
    values_.text(node, "when", text);
    if (text.empty()) return;
    const auto parsed = schema::parse_expression(text);
    if (const auto* problem = std::get_if<schema::ExpressionProblem>(&parsed)) {
      return refuse_condition(node, *problem);
    }
    when_ = &node;
    if (auto condition = Condition::parse(text)) rule_.when = std::move(*condition);
  }

  void refuse_condition(const TextNode& node, const schema::ExpressionProblem& problem) {
    const Mark at = place_in_scalar(context_.lines, context_.source, node, problem.at);
    context_.problems.add(at, "policy.when", base::concat("when: ", problem.text));
  }

  /// The condition must be valid for at least one operator that the rule matches.
  void check_condition() {
    size_t asked = 0;
    schema::ExpressionProblem shown_problem;
    const bool fits =
        any_operator_of(rule_.op, *context_.known, [&](const auto&, const auto& record) {
          schema::ExpressionProblem problem;
          if (ConditionProgram::compile(*rule_.when, *record.schema, &problem)) return true;
          const bool better = problem.text.find("did you mean") != std::string::npos;
          if (asked++ == 0 || better) shown_problem = std::move(problem);
          return false;
        });
    if (fits || asked == 0) return;
    if (asked > 1) {
      shown_problem.text += base::concat(" (of the ", asked, " operators that '", rule_.op,
                                         "' matches, none fits this condition)");
    }
    refuse_condition(*when_, shown_problem);
  }

  void read_boosts(const TextNode& node) {
    if (!node.is(TextNode::Kind::list)) {
      return values_.refuse(node, "policy.type",
                            base::concat("boost: expected a list such as [{impl: \"*/simd.*\", "
                                         "multiply: 1.5}], found ",
                                         shown(node)));
    }
    for (const TextNode& item : node.items) read_boost(item);
  }

  void read_boost(const TextNode& node) {
    Boost boost;
    std::optional<double> add, multiply;
    const std::array<Field, 3> fields{{
        {"impl", [&](const TextNode& v) { values_.token(v, "impl", boost.impl); }},
        {"add", [&](const TextNode& v) { values_.real(v, "add", -1000, 1000, add); }},
        {"multiply", [&](const TextNode& v) { values_.real(v, "multiply", 0.01, 100, multiply); }},
    }};
    const size_t before = context_.problems.count();
    if (!read_map(node, "a boost", fields, context_.problems)) return;
    if (context_.problems.count() != before) return;
    if (!add && !multiply) {
      return values_.refuse(node, "policy.boost",
                            "this boost has no effect: it needs add or "
                            "multiply");
    }
    boost.add = add.value_or(0);
    boost.multiply = multiply.value_or(1);
    rule_.boost.push_back(std::move(boost));
    boost_places_.push_back(node.at);
  }

  /// A boost without `impl` applies to the rule's `impl`.
  void name_boosts(const TextNode& node) {
    for (size_t i = 0; i < rule_.boost.size(); ++i) {
      if (!rule_.boost[i].impl.empty()) continue;
      if (rule_.impl.empty()) {
        context_.problems.add(
            boost_places_[i], "policy.boost",
            "this boost names no implementation: set impl in the boost or in the rule");
      }
      rule_.boost[i].impl = rule_.impl;
    }
    if (!rule_.impl.empty() && rule_.boost.empty() && !rule_.breaker) {
      values_.refuse(node, "policy.rule",
                     "impl only selects the target of boost and breaker, and this rule has "
                     "neither; to choose implementations use require, prefer, order, deny or "
                     "allow");
    }
  }

  const ReadContext& context_;
  ValueReader values_;
  PresentNames* names_;
  Rule rule_;
  const TextNode* when_ = nullptr;
  std::vector<Mark> boost_places_;
  bool has_effect_ = false;
};

}  // namespace

void read_rules(const ReadContext& context, const TextNode& node, PresentNames* names,
                std::vector<Rule>& into) {
  if (!node.is(TextNode::Kind::list)) {
    return context.problems.add(
        node.at, "policy.type",
        base::concat("rules: expected a list of rules, found ", shown(node)));
  }
  if (node.items.size() > kMostRules) {
    return context.problems.add(node.at, "policy.limit",
                                base::concat("rules: found ", node.items.size(), " rules; at most ",
                                             kMostRules, " are allowed"));
  }
  into.reserve(node.items.size());
  for (const TextNode& item : node.items) into.push_back(RuleReader(context, names).read(item));
}

namespace {

constexpr int64_t kFormat = 1;

/// Reads the top-level map of a file.
class PolicyReader {
 public:
  explicit PolicyReader(const ReadContext& context)
      : context_(context), values_(context.problems) {}

  Policy read(const TextNode& node) {
    if (!node.is(TextNode::Kind::null) &&
        !read_map(node, "a policy", fields(), context_.problems)) {
      return {};
    }
    if (policy_.strict_names) context_.names = std::max(context_.names, Names::strict);
    std::optional<PresentNames> names;
    if (context_.names != Names::lenient && context_.known != nullptr)
      names.emplace(*context_.known);
    PresentNames* const present = names ? &*names : nullptr;
    check_names(context_, values_, "*", present);
    if (rules_ != nullptr) read_rules(context_, *rules_, present, policy_.rules);
    if (!versioned_) {
      values_.refuse(node, "policy.version",
                     "the format version is missing; start the policy with opmux: 1");
    }
    return std::move(policy_);
  }

 private:
  std::vector<Field> fields() {
    return {{"opmux", [this](const TextNode& value) { read_format(value); }},
            {"defaults", [this](const TextNode& value) { read_defaults(value); }},
            {"rules", [this](const TextNode& value) { rules_ = &value; }},
            {"breaker", [this](const TextNode& v) { values_.breaker(v, policy_.breaker); }},
            {"shadow", [this](const TextNode& v) { values_.shadow(v, policy_.shadow); }},
            {"tuning", [this](const TextNode& value) { read_tuning(value); }},
            {"names", [this](const TextNode& value) { read_names(value); }}};
  }

  void read_format(const TextNode& node) {
    versioned_ = true;
    if (int_of(node) == kFormat) return;
    values_.refuse(
        node, "policy.version",
        base::concat("opmux: expected 1, the format version that this library reads, found ",
                     shown(node)));
  }

  void read_defaults(const TextNode& node) {
    const std::array<Field, 5> fields{{
        {"strict", [this](const TextNode& v) { values_.boolean(v, "strict", policy_.strict); }},
        {"prefer", [this](const TextNode& v) { values_.tokens(v, "prefer", policy_.prefer); }},
        {"allow", [this](const TextNode& v) { values_.tokens(v, "allow", policy_.allow); }},
        {"transforms", [this](const TextNode& v) { values_.transforms(v, policy_.transforms); }},
        {"allow_none", [this](const TextNode& v) { read_allow_none(v); }},
    }};
    read_map(node, "defaults", fields, context_.problems);
  }

  void read_allow_none(const TextNode& node) {
    std::optional<bool> value;
    values_.boolean(node, "allow_none", value);
    policy_.allow_none = value.value_or(false);
  }

  void read_tuning(const TextNode& node) {
    if (node.is(TextNode::Kind::map)) {
      const std::array<Field, 1> fields{
          {{"online", [this](const TextNode& value) { read_online(value); }}}};
      read_map(node, "tuning", fields, context_.problems);
      return;
    }
    constexpr std::array<std::string_view, 3> kWords{"off", "bundle", "online"};
    constexpr std::array kMeanings{Tuning::off, Tuning::bundle, Tuning::online};
    if (const auto word = values_.word(node, "tuning", kWords)) policy_.tuning = kMeanings[*word];
  }

  void read_online(const TextNode& node) {
    constexpr std::array<std::string_view, 2> kWords{"propose", "apply"};
    constexpr std::array kMeanings{Tuning::online, Tuning::online_apply};
    if (const auto word = values_.word(node, "online", kWords)) policy_.tuning = kMeanings[*word];
  }

  void read_names(const TextNode& node) {
    constexpr std::array<std::string_view, 2> kWords{"lenient", "strict"};
    policy_.strict_names = values_.word(node, "names", kWords) == size_t{1};
  }

  ReadContext context_;
  ValueReader values_;
  Policy policy_;
  const TextNode* rules_ = nullptr;  ///< read last, because `names` may follow them
  bool versioned_ = false;
};

}  // namespace

Result<Policy> parse_policy(std::string_view text, std::string_view name,
                            const registry::RegistrySnapshot* known, Names names) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Problems problems;
  const auto node = read_yaml(text, problems);
  if (!node) return problems.status(name, text);
  const SourceLines lines(text);
  Policy policy = PolicyReader({name, text, lines, problems, known, names}).read(*node);
  if (!problems.none()) return problems.status(name, text);
  if (Status status = validate(policy); !status.ok()) return status;
  return policy;
}

}  // namespace opmux::policy
