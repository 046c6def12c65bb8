#pragma once

#include <chrono>
#include <optional>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Marks rules as expired whose last day is over, including those of outer policies. Returns true
/// if it marked any. Never unmarks a rule.
bool mark_expired(Policy& policy, std::chrono::sys_seconds now);

/// The time at which the next rule expires; nullopt if none will.
std::optional<std::chrono::sys_seconds> next_expiry(const Policy& policy);

}  // namespace opmux::policy
