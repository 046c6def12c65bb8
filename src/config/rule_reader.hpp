#pragma once

#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "config/policy_values.hpp"
#include "config/problems.hpp"
#include "registry/snapshot.hpp"

namespace opmux::config {

/// Inputs and outputs that all readers of one file share.
struct ReadContext {
  std::string_view name, source;
  const SourceLines& lines;
  Problems& problems;
  const registry::RegistrySnapshot* known = nullptr;
  bool strict_names = false;  ///< unmatched tokens are problems, except in `deny`
};

/// Reads the rules of a file. A rule without any effect is a problem.
void read_rules(const ReadContext& context, const TextNode& node, std::vector<Rule>& into);

}  // namespace opmux::config
