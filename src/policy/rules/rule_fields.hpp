#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <opmux/policy.hpp>

/// The table of the members of `Rule`. The reader of policy files, the content hash, validation,
/// expiry, lint and the Python binding iterate over it; tools/gen_docs.py writes the rule part of
/// docs/schemas/policy.schema.json and of python/opmux/_core.pyi from it. A member of `Rule`
/// without an entry does not compile.
namespace opmux::policy {

/// How a value is written in a file and which values are valid. The type of the member must fit.
enum class Form : uint8_t {
  text,        ///< std::string
  op,          ///< std::string: an operator or a glob over operators
  condition,   ///< std::optional<Condition>
  token,       ///< std::string: one token
  tokens,      ///< std::vector<std::string>: a list of tokens
  boosts,      ///< std::vector<Boost>
  transforms,  ///< std::vector<std::string>: words
  flag,        ///< bool or std::optional<bool>
  breaker,     ///< std::optional<BreakerOptions>
  integer,     ///< int or std::optional<int>, from `least` to `most`
  date,        ///< std::string
};

/// How the values of several rules combine. A rule needs at least one key that is not `about`.
enum class Role : uint8_t {
  about,       ///< describes the rule and selects what it applies to
  constraint,  ///< the values of all matching rules hold, also after `expires`
  ordering,    ///< the first matching rule that sets it wins; lapses after `expires`
  score,       ///< the values of all matching rules add up; lapses after `expires`
};

constexpr bool lapses(Role role) { return role == Role::ordering || role == Role::score; }

/// Whether a value is part of PolicyLayer::hash_for(). Lockfiles contain this hash, so it must not
/// change for rules that do not use a new key.
enum class Hashed : uint8_t {
  no,      ///< does not affect the choice, or affects it by the order of the rules
  always,  ///< written for each rule, in the order of the table
  bit,     ///< a bool, one bit of a number, in the order of the table
  if_set,  ///< written with its key if it differs from the default; every new key with an effect
};

/// One member of `Rule`.
template <class T>
struct RuleField {
  std::string_view key;  ///< In files and in Python.
  T Rule::* member;
  Form form = Form::text;
  Role role = Role::about;
  Hashed hashed = Hashed::no;
  bool in_files = true;                     ///< False: set by the runtime.
  std::string_view python = {};             ///< Type in the Python stub; empty = not in Python.
  std::string_view help = {};               ///< Description in the JSON schema.
  int least = 0, most = 0;                  ///< Range of an integer.
  std::string_view reason = "policy.type";  ///< Reason code of an invalid integer or date.
};

// Messages list the keys in this order.
inline constexpr std::tuple kRuleFields{
    RuleField{.key = "name", .member = &Rule::name, .python = "str"},
    RuleField{.key = "op",
              .member = &Rule::op,
              .form = Form::op,
              .python = "str",
              .help = "an operator, or a pattern over operators; all if it is left out"},
    RuleField{.key = "when",
              .member = &Rule::when,
              .form = Form::condition,
              .hashed = Hashed::always,
              .python = "Condition | None",
              .help = "a condition, see docs/policy_conditions.md"},
    RuleField{.key = "impl",
              .member = &Rule::impl,
              .form = Form::token,
              .help = "the target of breaker, and of a boost without impl"},
    RuleField{.key = "require",
              .member = &Rule::require,
              .form = Form::tokens,
              .role = Role::constraint,
              .hashed = Hashed::always,
              .python = "list[str]",
              .help = "nothing else may run"},
    RuleField{.key = "prefer",
              .member = &Rule::prefer,
              .form = Form::tokens,
              .role = Role::ordering,
              .hashed = Hashed::always,
              .python = "list[str]",
              .help = "these are tried first, in this order"},
    RuleField{.key = "order",
              .member = &Rule::order,
              .form = Form::tokens,
              .role = Role::ordering,
              .hashed = Hashed::always,
              .python = "list[str]",
              .help = "these are tried in this order, and nothing else"},
    RuleField{.key = "deny",
              .member = &Rule::deny,
              .form = Form::tokens,
              .role = Role::constraint,
              .hashed = Hashed::always,
              .python = "list[str]",
              .help = "never, not even as a last resort"},
    RuleField{.key = "allow",
              .member = &Rule::allow,
              .form = Form::tokens,
              .role = Role::ordering,
              .hashed = Hashed::always,
              .python = "list[str]",
              .help = "if not empty, nothing else may run"},
    RuleField{.key = "boost",
              .member = &Rule::boost,
              .form = Form::boosts,
              .role = Role::score,
              .hashed = Hashed::always,
              .python = "list[Boost]"},
    RuleField{.key = "transforms",
              .member = &Rule::transforms,
              .form = Form::transforms,
              .role = Role::ordering,
              .hashed = Hashed::always,
              .python = "list[str]"},
    RuleField{.key = "strict",
              .member = &Rule::strict,
              .form = Form::flag,
              .role = Role::ordering,
              .hashed = Hashed::always,
              .python = "bool | None",
              .help = "true: the first outcome that is not ok is returned, nothing else is tried"},
    RuleField{
        .key = "breaker", .member = &Rule::breaker, .form = Form::breaker, .role = Role::ordering},
    RuleField{.key = "rank",
              .member = &Rule::rank,
              .form = Form::integer,
              .python = "int",
              .help = "higher first, then the order of the file",
              .most = 1000,
              .reason = "policy.rank"},
    RuleField{.key = "reason", .member = &Rule::reason, .python = "str"},
    RuleField{.key = "owner", .member = &Rule::owner, .python = "str"},
    RuleField{.key = "expires",
              .member = &Rule::expires,
              .form = Form::date,
              .python = "str",
              .help = "UTC, end of that day",
              .reason = "policy.expires"},
    RuleField{.key = "expired",
              .member = &Rule::expired,
              .form = Form::flag,
              .hashed = Hashed::bit,
              .in_files = false},
    RuleField{.key = "allow_none",
              .member = &Rule::allow_none,
              .form = Form::flag,
              .role = Role::constraint,
              .hashed = Hashed::bit,
              .python = "bool",
              .help = "the policy may leave an operator without implementations"},
    RuleField{.key = "where", .member = &Rule::where, .in_files = false},
};

/// Calls `visit(field)` for each entry, in the order of the table.
template <class Visit>
constexpr void for_each_rule_field(const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, kRuleFields);
}

/// Whether `rule` has another value than a rule that does not mention the key.
template <class T>
bool is_set(const RuleField<T>& field, const Rule& rule) {
  static const Rule kDefault;
  if constexpr (std::is_same_v<T, std::optional<Condition>>) {
    return (rule.*field.member).has_value();
  } else if constexpr (std::is_same_v<T, std::vector<Boost>>) {
    return !(rule.*field.member).empty();
  } else {
    return rule.*field.member != kDefault.*field.member;
  }
}

namespace rule_fields_detail {

/// Converts to the type of any member.
struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): initializes members
};

template <size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { Rule{(static_cast<void>(I), AnyValue{})...}; };
}

/// The number of members of `Rule`: the most values that can initialize it.
template <size_t N = 1>
constexpr size_t member_count() {
  if constexpr (takes(std::make_index_sequence<N>())) {
    return member_count<N + 1>();
  } else {
    return N - 1;
  }
}

template <class A, class B>
constexpr bool same_member(const RuleField<A>& a, const RuleField<B>& b) {
  if constexpr (std::is_same_v<A, B>) {
    return a.member == b.member;
  } else {
    return false;
  }
}

/// Whether no two entries have the same key or member.
constexpr bool distinct() {
  bool all = true;
  for_each_rule_field([&](const auto& a) {
    size_t same = 0;
    for_each_rule_field([&](const auto& b) { same += a.key == b.key || same_member(a, b); });
    all = all && same == 1;
  });
  return all;
}

template <class T>
constexpr bool fits(Form form) {
  switch (form) {
    case Form::text:
    case Form::op:
    case Form::token:
    case Form::date: return std::is_same_v<T, std::string>;
    case Form::tokens:
    case Form::transforms: return std::is_same_v<T, std::vector<std::string>>;
    case Form::condition: return std::is_same_v<T, std::optional<Condition>>;
    case Form::boosts: return std::is_same_v<T, std::vector<Boost>>;
    case Form::flag: return std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>;
    case Form::breaker: return std::is_same_v<T, std::optional<BreakerOptions>>;
    case Form::integer: return std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>;
  }
  return false;
}

constexpr bool forms_fit() {
  bool all = true;
  for_each_rule_field(
      [&]<class T>(const RuleField<T>& field) { all = all && fits<T>(field.form); });
  return all;
}

static_assert(member_count() == std::tuple_size_v<decltype(kRuleFields)>,
              "every member of Rule needs an entry in kRuleFields");
static_assert(distinct(), "two entries of kRuleFields have the same key or member");
static_assert(forms_fit(), "an entry of kRuleFields has a form that does not fit its member");

}  // namespace rule_fields_detail

}  // namespace opmux::policy
