#pragma once

#include <optional>
#include <string>

#include "world.hpp"

namespace opmux::property {

/// The part of a policy that a file can express: defaults and rules whose conditions have a text.
Policy file_part(const Policy& policy, const Schema& schema);

/// That part as a policy file, sometimes in JSON, which is also valid YAML.
std::string file_text(const Policy& policy, const Schema& schema, bool json);

/// A condition as CEL; nullopt if CEL cannot express it (tags by number; enums and bools by order).
std::optional<std::string> cel_text(const Condition& condition, const Schema& schema);

}  // namespace opmux::property
