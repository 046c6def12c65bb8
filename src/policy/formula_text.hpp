#pragma once

#include <string>

#include "registry/formula.hpp"

namespace opmux::policy {

/// A formula with the names of a schema and without blanks: "(T*2)>H". Different formulas may have
/// the same text only if they ask the same.
std::string to_string(const registry::Schema& schema, const registry::Formula& formula);

}  // namespace opmux::policy
