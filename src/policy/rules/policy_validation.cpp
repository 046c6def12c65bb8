#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <opmux/policy.hpp>

#include "base/system/clock.hpp"
#include "base/text.hpp"
#include "policy/conditions/condition_program.hpp"
#include "policy/rules/policy_entry.hpp"
#include "policy/rules/rule_fields.hpp"
#include "policy/rules/rule_place.hpp"
#include "policy/rules/token.hpp"
#include "schema/schema.hpp"

namespace opmux {
namespace {

constexpr size_t kLongestList = 1024;
constexpr int kDeepestNesting = 64;
constexpr double kMostAdd = 1000, kLeastMultiply = 0.01, kMostMultiply = 100;

using Tokens = std::vector<std::string>;
using policy::Form;

/// Location that precedes an error message: "rule \"x\" (policy.yaml:3): prefer: ...".
struct Place {
  std::string text;

  Status refuse(std::string_view reason, std::string_view why) const {
    return {Code::invalid_argument, std::string(reason), base::concat(text, why)};
  }
};

Status check_tokens(const Place& place, std::string_view field, const Tokens& tokens) {
  if (tokens.size() > kLongestList) {
    return place.refuse("policy.token",
                        base::concat(field, ": ", tokens.size(), " tokens, at most ", kLongestList,
                                     " are allowed"));
  }
  for (const std::string& text : tokens) {
    const auto token = policy::Token::parse(text);
    if (!token) {
      return place.refuse("policy.token", base::concat(field, ": ", token.error().message()));
    }
  }
  return {};
}

Status check_vendors(std::string_view field, const Tokens& names) {
  for (const std::string& name : names) {
    if (schema::valid_name(name)) continue;
    return Place{}.refuse("policy.vendor", base::concat(field, ": '", name,
                                                        "' is not a vendor name: the form is "
                                                        "[a-z][a-z0-9_]*, at most 64 bytes"));
  }
  return {};
}

Status check_transforms(const Place& place, const Tokens& words) {
  if (words.empty() || policy::transform_bits(words)) return {};
  return place.refuse(
      "policy.transforms",
      base::concat("transforms: '", base::join(words, ", "),
                   "' is not allowed; use contiguous, widen, both of them, or none alone"));
}

Status check_boost(const Place& place, const Boost& boost) {
  if (Status status = check_tokens(place, "boost", {boost.impl}); !status.ok()) return status;
  if (!(std::abs(boost.add) <= kMostAdd)) {
    return place.refuse("policy.boost", base::concat("boost: add is ", base::number_text(boost.add),
                                                     ", it must be between -1000 and 1000"));
  }
  if (!(boost.multiply >= kLeastMultiply && boost.multiply <= kMostMultiply)) {
    return place.refuse("policy.boost",
                        base::concat("boost: multiply is ", base::number_text(boost.multiply),
                                     ", it must be between 0.01 and 100"));
  }
  return {};
}

Status check_value(const Place& place, const policy::RuleField<std::string>& field,
                   const std::string& text) {
  if (field.form == Form::op && !policy::valid_operator_pattern(text)) {
    return place.refuse("policy.op",
                        base::concat(field.key, ": '", text,
                                     "' is neither an operator's name nor a pattern for "
                                     "operators"));
  }
  if (field.form == Form::date && !text.empty() && !base::is_date(text)) {
    return place.refuse(field.reason, base::concat(field.key, ": '", text,
                                                   "' is not a date of the form 2027-02-01"));
  }
  return {};
}

Status check_value(const Place& place, const policy::RuleField<Tokens>& field, const Tokens& list) {
  return field.form == Form::transforms ? check_transforms(place, list)
                                        : check_tokens(place, field.key, list);
}

Status check_value(const Place& place, const policy::RuleField<std::vector<Boost>>&,
                   const std::vector<Boost>& boosts) {
  for (const Boost& boost : boosts) {
    if (Status status = check_boost(place, boost); !status.ok()) return status;
  }
  return {};
}

Status check_value(const Place& place, const policy::RuleField<std::optional<Condition>>& field,
                   const std::optional<Condition>& condition) {
  const std::string problem = condition ? policy::condition_problem(*condition) : "";
  return problem.empty() ? Status()
                         : place.refuse("policy.when", base::concat(field.key, ": ", problem));
}

template <class Field>
Status check_value(const Place& place, const Field& field, int number) {
  if (number >= field.least && number <= field.most) return {};
  return place.refuse(field.reason, base::concat(field.key, ": ", number, " is not between ",
                                                 field.least, " and ", field.most));
}

template <class Field>
Status check_value(const Place& place, const Field& field, const std::optional<int>& number) {
  return number ? check_value(place, field, *number) : Status();
}

/// Every other value is valid.
template <class T>
Status check_value(const Place&, const policy::RuleField<T>&, const T&)
  requires std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>> ||
           std::is_same_v<T, std::optional<BreakerOptions>>
{
  return {};
}

Status check_rule(const Rule& rule, size_t position) {
  const Place place{policy::place_of_rule(rule, position)};
  Status status;
  policy::for_each_rule_field([&](const auto& field) {
    if (status.ok()) status = check_value(place, field, rule.*field.member);
  });
  return status;
}

Status check_orders(const Policy& policy) {
  for (const auto& [op, tokens] : policy.per_op) {
    const Place place{base::concat("per_op ", op, ": ")};
    if (!schema::valid_operator_name(op)) {
      return place.refuse("policy.op", "this is not an operator's name");
    }
    if (tokens.empty()) return place.refuse("policy.token", "an order needs at least one token");
    if (Status status = check_tokens(place, "order", tokens); !status.ok()) return status;
  }
  return {};
}

Status check_general(const Policy& policy) {
  const std::array<std::pair<std::string_view, const Tokens*>, 4> lists{
      {{"prefer", &policy.prefer},
       {"require", &policy.require},
       {"deny", &policy.deny},
       {"allow", &policy.allow}}};
  for (const auto& [field, tokens] : lists) {
    if (Status status = check_tokens({}, field, *tokens); !status.ok()) return status;
  }
  if (Status bad = check_transforms({}, policy.transforms); !bad.ok()) return bad;
  Status status = check_vendors("allow_vendors", policy.allow_vendors);
  return status.ok() ? check_vendors("deny_vendors", policy.deny_vendors) : status;
}

}  // namespace

Status validate(const Policy& policy) {
  int depth = 0;
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) {
    if (++depth > kDeepestNesting) {
      return Place{}.refuse("policy.too_deep", "more than 64 different policies are nested");
    }
    if (Status status = check_general(*at); !status.ok()) return status;
    if (Status status = check_orders(*at); !status.ok()) return status;
    for (size_t i = 0; i < at->rules.size(); ++i) {
      if (Status status = check_rule(at->rules[i], i); !status.ok()) return status;
    }
  }
  return {};
}

}  // namespace opmux
