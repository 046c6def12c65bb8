#pragma once

#include <optional>
#include <string_view>

#include "policy/files/problems.hpp"

namespace opmux::policy {

/// Limits that are enforced while a text is parsed.
struct TextLimits {
  size_t bytes = size_t{4} << 20;
  size_t depth = 32;
  size_t nodes = 400'000;  ///< including those that aliases repeat
  size_t aliases = 1000;
};

/// Parses one YAML or JSON document. Adds errors to `problems` ("policy.limit", "policy.syntax",
/// "policy.duplicate_key") and then returns nullopt. Refuses tags, merge keys, keys that are not
/// scalars, and duplicate keys.
std::optional<TextNode> read_yaml(std::string_view text, Problems& problems,
                                  const TextLimits& limits = {});

}  // namespace opmux::policy
