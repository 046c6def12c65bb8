#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <opmux/policy.hpp>

#include "policy/files/policy_values.hpp"
#include "policy/files/problems.hpp"
#include "policy/rules/lint.hpp"
#include "registry/snapshot.hpp"

namespace opmux::policy {

/// Which tokens must match a registered implementation: none, all except those in `deny`, or all.
enum class Names : uint8_t { lenient, strict, strict_with_deny };

/// Inputs and outputs that all readers of one file share.
struct ReadContext {
  std::string_view name, source;
  const SourceLines& lines;
  Problems& problems;
  const registry::RegistrySnapshot* known = nullptr;
  Names names = Names::lenient;
};

/// Reads the rules of a file. A rule without any effect is a problem. `names`: those that tokens
/// must match; may be null.
void read_rules(const ReadContext& context, const TextNode& node, PresentNames* names,
                std::vector<Rule>& into);

/// Parses a policy in YAML or JSON, format 1. `name` is the file name for messages and Rule::where.
/// Unknown keys and words, wrong types and duplicate keys are errors. The message lists all of
/// them, each with file:line:column, the line and a caret.
///
/// With `known`, operators must be registered, except operators of a vendor such as `acme.swish`. A
/// condition must be valid for at least one operator that its rule matches. `names` are those that
/// must be present; `names: strict` in the text has at least the effect of Names::strict.
///
/// Reasons: "policy.syntax", "policy.limit", "policy.unknown_key", "policy.duplicate_key",
/// "policy.type", "policy.version", "policy.rule", "policy.token", "policy.op", "policy.when",
/// "policy.boost", "policy.breaker", "policy.unmatched", "policy.unsupported".
Result<Policy> parse_policy(std::string_view text, std::string_view name,
                            const registry::RegistrySnapshot* known = nullptr,
                            Names names = Names::lenient);

}  // namespace opmux::policy
