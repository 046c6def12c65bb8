#pragma once

#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "config/policy_values.hpp"
#include "config/problems.hpp"
#include "registry/snapshot.hpp"

namespace opmux::config {

/// What is known while a text is read.
struct ReadContext {
  std::string_view name, source;
  const SourceLines& lines;
  Problems& problems;
  const registry::RegistrySnapshot* known = nullptr;
  bool strict_names = false;  ///< what is not present is a problem, but in `deny`
};

/// The rules of a file. A rule without any effect is a problem.
void read_rules(const ReadContext& context, const TextNode& node, std::vector<Rule>& into);

}  // namespace opmux::config
