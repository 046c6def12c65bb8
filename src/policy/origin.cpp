#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "policy/operator_policy.hpp"

namespace opmux::policy {
namespace {

std::string variable_of(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kVariables{
      {{"prefer", "OPMUX_PREFER"},
       {"strict", "OPMUX_STRICT"},
       {"order", "OPMUX_PER_OP"},
       {"allow_vendors", "OPMUX_ALLOW_VENDORS"},
       {"deny_vendors", "OPMUX_DENY_VENDORS"}}};
  for (const auto& [name, variable] : kVariables) {
    if (name == field) return std::string(variable);
  }
  return std::string(field);
}

std::string describe_rule(const PolicyLayer& layer, const Rule& rule) {
  std::vector<std::string> details{rule.where.empty() ? layer.name() : rule.where};
  if (!rule.owner.empty()) details.push_back(rule.owner);
  if (!rule.expires.empty()) {
    details.push_back((rule.expired ? "expired " : "until ") + rule.expires);
  }
  const std::string who =
      rule.name.empty() ? base::concat("rule for ", rule.op) : base::concat("\"", rule.name, "\"");
  return base::concat(who, " (", base::join(details, ", "), ")");
}

}  // namespace

std::string describe(const Origin& origin) {
  if (origin.layer == nullptr) return "built-in";
  const PolicyLayer& layer = *origin.layer;
  if (origin.rule != nullptr) return describe_rule(layer, *origin.rule);
  switch (layer.source()) {
    case Source::scope: return "scope";
    case Source::environment: return variable_of(origin.field) + " (environment)";
    case Source::builtin: return "built-in";
    case Source::code: return base::concat(layer.name(), " (code)");
    case Source::file:
    case Source::platform: break;
  }
  return base::concat(origin.field, " (", layer.name(), ")");
}

}  // namespace opmux::policy
