#pragma once

#include <optional>
#include <string_view>

#include "config/problems.hpp"
#include "config/text_node.hpp"

namespace opmux::config {

/// How large a text may be, before anything is built from it.
struct TextLimits {
  size_t bytes = size_t{4} << 20;
  size_t depth = 32;
  size_t nodes = 400'000;  ///< aliases count as often as they stand
  size_t aliases = 1000;
};

/// One YAML or JSON document. Whatever is wrong with it is added to `problems` ("policy.limit",
/// "policy.syntax"). Tags, merge keys, keys that are no texts and duplicate keys are refused.
std::optional<TextNode> read_yaml(std::string_view text, Problems& problems,
                                  const TextLimits& limits = {});

}  // namespace opmux::config
