#pragma once

#include <string>

#include <opmux/policy.hpp>

#include "base/text.hpp"

namespace opmux::policy {

/// Location of a rule that precedes an error message: "rule \"x\" (policy.yaml:3): ".
inline std::string place_of_rule(const Rule& rule, size_t position) {
  std::string text = rule.name.empty() ? base::concat("rule ", position + 1)
                                       : base::concat("rule \"", rule.name, "\"");
  if (!rule.where.empty()) text += base::concat(" (", rule.where, ")");
  return text + ": ";
}

}  // namespace opmux::policy
