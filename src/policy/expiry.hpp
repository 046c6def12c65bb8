#pragma once

#include <chrono>
#include <optional>

#include <opmux/policy.hpp>

namespace opmux::policy {

/// Marks the rules whose last day is over, those of outer policies too; true if some were not
/// marked before. Marks are never taken back.
bool mark_expired(Policy& policy, std::chrono::sys_seconds now);

/// When the next rule expires.
std::optional<std::chrono::sys_seconds> next_expiry(const Policy& policy);

}  // namespace opmux::policy
