#pragma once

#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/files/policy_values.hpp"
#include "policy/files/problems.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

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

/// Parses a policy in YAML or JSON, format 1. `name` is the file name for messages and Rule::where.
/// Unknown keys and words, wrong types and duplicate keys are errors. The message lists all of
/// them, each with file:line:column, the line and a caret.
///
/// With `known`, operators must be registered, except operators of a vendor such as `acme.swish`. A
/// condition must be valid for at least one operator that its rule matches. Under `names: strict`
/// or `strict_names`, every token must match a registered implementation, except in `deny`.
///
/// Reasons: "policy.syntax", "policy.limit", "policy.unknown_key", "policy.duplicate_key",
/// "policy.type", "policy.version", "policy.rule", "policy.token", "policy.op", "policy.when",
/// "policy.boost", "policy.breaker", "policy.unmatched", "policy.unsupported".
Result<Policy> parse_policy(std::string_view text, std::string_view name,
                            const registry::RegistrySnapshot* known = nullptr,
                            bool strict_names = false);

}  // namespace opmux::policy
