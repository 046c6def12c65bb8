#pragma once

#include <string>

#include "registry/formula.hpp"

namespace opmux::policy {

/// A formula as text, with a schema's names and without spaces: "((T*2)>H)". Formulas with the same
/// text are equivalent.
std::string to_string(const registry::Schema& schema, const registry::Formula& formula);

}  // namespace opmux::policy
