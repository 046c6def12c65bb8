#include "policy/expiry.hpp"

#include <memory>

#include "base/date.hpp"

namespace opmux::policy {
namespace {

/// The time at which a rule expires; nullopt if it never does or already has.
std::optional<std::chrono::sys_seconds> end_of(const Rule& rule) {
  const auto end = rule.expired ? std::nullopt : base::end_of_day(rule.expires);
  if (!end) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(*end));
}

}  // namespace

bool mark_expired(Policy& policy, std::chrono::sys_seconds now) {
  bool any = false;
  for (Rule& rule : policy.rules) {
    const auto end = end_of(rule);
    if (!end || *end > now) continue;
    rule.expired = any = true;
  }
  if (policy.outer == nullptr) return any;
  Policy outer = *policy.outer;
  if (!mark_expired(outer, now)) return any;
  policy.outer = std::make_shared<const Policy>(std::move(outer));
  return true;
}

std::optional<std::chrono::sys_seconds> next_expiry(const Policy& policy) {
  std::optional<std::chrono::sys_seconds> next =
      policy.outer == nullptr ? std::nullopt : next_expiry(*policy.outer);
  for (const Rule& rule : policy.rules) {
    const auto end = end_of(rule);
    if (end && (!next || *end < *next)) next = end;
  }
  return next;
}

}  // namespace opmux::policy
