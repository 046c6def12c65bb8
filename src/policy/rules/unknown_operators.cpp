#include "policy/rules/unknown_operators.hpp"

#include "base/text.hpp"
#include "policy/rules/rule_place.hpp"
#include "policy/rules/token.hpp"

namespace opmux::policy {
namespace {

std::string nearest_operator(std::string_view op, const registry::RegistrySnapshot& present) {
  std::vector<std::string_view> names;
  for (const auto& [name, record] : present.operators) names.push_back(name);
  return base::suggestion(op, std::span<const std::string_view>(names));
}

bool is_known(std::string_view op, const registry::RegistrySnapshot& present) {
  if (op.find('.') != op.npos) return true;
  return any_operator_of(op, present, [](const auto&, const auto&) { return true; });
}

}  // namespace

std::string why_unknown(std::string_view op, const registry::RegistrySnapshot& present) {
  if (is_known(op, present)) return {};
  const std::string hint = nearest_operator(op, present);
  const bool pattern = op.find('*') != op.npos;
  return base::concat(pattern ? "no operator matches '" : "there is no operator '", op, "'",
                      hint.empty() ? "; `opmux list` shows the registered operators" : hint);
}

std::vector<UnknownOperator> unknown_operators(const Policy& policy,
                                               const registry::RegistrySnapshot& present) {
  std::vector<UnknownOperator> all;
  const auto add = [&](const std::string& op, const std::string& place) {
    if (const std::string why = why_unknown(op, present); !why.empty()) {
      all.push_back({op, place + why, !nearest_operator(op, present).empty()});
    }
  };
  for (const Policy* at = &policy; at != nullptr; at = at->outer.get()) {
    for (const auto& [op, order] : at->per_op) add(op, base::concat("per_op ", op, ": "));
    for (size_t i = 0; i < at->rules.size(); ++i) {
      add(at->rules[i].op, place_of_rule(at->rules[i], i) + "op: ");
    }
  }
  return all;
}

Status check_operators(const Policy& policy, const registry::RegistrySnapshot& present) {
  const std::vector<UnknownOperator> unknown = unknown_operators(policy, present);
  if (unknown.empty()) return {};
  return {Code::invalid_argument, "policy.op", unknown.front().text};
}

}  // namespace opmux::policy
