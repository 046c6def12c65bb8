#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/migrate/systems.hpp"

namespace opmux::cli::migrate {

/// An operation of LayerZero in opmux: the operator, and the condition of a variant of it such as
/// attention.causal. `op` is "*" for all.
struct LzTarget {
  std::string op, when;
};

/// The operators that a name or a pattern of LayerZero's operations stands for; empty if opmux has
/// none of them.
std::vector<LzTarget> targets_of(std::string_view operation);

/// The operator whose name is at the end of a kernel's id, or "*".
std::string operator_of_kernel(std::string_view kernel);
/// The tokens for a kernel's id or a pattern over ids, for an operator or "*".
Words tokens_of_kernel(std::string_view kernel, std::string_view op, const Migration& migration);

/// The conditions of a rule for one operator, joined by `&&` with `when`. For "*" there may be one
/// per name that operators give their first tensor. Empty and `why` set if a field has no equal.
std::vector<std::string> conditions_of(const TextNode* conditions, const LzTarget& target,
                                       const Migration& migration, std::string& why);

/// A field of LayerZero's DispatchConfig or a variable that sets one.
void take_layerzero_option(std::string_view name, const Setting& setting, Migration& migration);

}  // namespace opmux::cli::migrate
