#pragma once

#include <string_view>

#include <opmux/policy.hpp>

#include "registry/snapshot.hpp"

namespace opmux::config {

/// A policy from a text in YAML or JSON, format 1. `name` is what messages and Rule::where call
/// it. Nothing is guessed: unknown keys and words, wrong types and duplicate keys are refused, all
/// at once, each with file:line:column, the line and a caret.
///
/// With `known`, operators have to be among those registered (but those of a vendor, `acme.swish`,
/// may be absent), conditions have to make sense for one of those that they are about and, under
/// `names: strict` or `strict_names`, implementations have to be present, but for those denied.
///
/// Reasons: "policy.syntax", "policy.limit", "policy.unknown_key", "policy.duplicate_key",
/// "policy.type", "policy.version", "policy.rule", "policy.token", "policy.op", "policy.when",
/// "policy.boost", "policy.breaker", "policy.unmatched", "policy.unsupported".
Result<Policy> parse_policy(std::string_view text, std::string_view name,
                            const registry::RegistrySnapshot* known = nullptr,
                            bool strict_names = false);

}  // namespace opmux::config
