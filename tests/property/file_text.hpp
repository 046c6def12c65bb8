#pragma once

#include <optional>
#include <string>

#include "world.hpp"

namespace opmux::property {

/// What of a policy a file can say: defaults and rules, with conditions that have a text.
Policy file_part(const Policy& policy, const Schema& schema);

/// That part as a policy file; JSON now and then, which is YAML too.
std::string file_text(const Policy& policy, const Schema& schema, bool json);

/// A condition as CEL; nothing if CEL cannot ask it: tags by number, enums and truth values by
/// order.
std::optional<std::string> cel_text(const Condition& condition, const Schema& schema);

}  // namespace opmux::property
