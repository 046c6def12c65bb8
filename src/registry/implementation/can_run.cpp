#include "registry/implementation/can_run.hpp"

#include "base/text.hpp"
#include "registry/implementation/architecture.hpp"

namespace opmux::registry {
namespace {

Reason check_features(const ImplementationRecord& implementation, std::string& text) {
  if (implementation.capability.machine != Reason::none)
    text = implementation.capability.machine_text;
  return implementation.capability.machine;
}

}  // namespace

Reason obstacle_to_use(const ImplementationRecord& implementation, std::string& text) {
  const Backend& backend = *implementation.backend;
  // It is registered until there is memory to publish a registry without it.
  if (implementation.withdrawn.load(std::memory_order_acquire)) {
    text = "it was withdrawn";
    return Reason::registry_withdrawn;
  }
  if (!backend.enabled()) {
    text = base::concat("backend ", backend.name(), " is switched off");
    return Reason::backend_disabled;
  }
  if (backend.lost_by_fork()) {
    text = base::concat("backend ", backend.name(),
                        " was used before the fork and does not work in the child process");
    return Reason::backend_forked;
  }
  const std::string* why = implementation.quarantined.load(std::memory_order_acquire);
  if (why == nullptr) why = backend.quarantined().load(std::memory_order_acquire);
  if (why == nullptr) return Reason::none;
  text = *why;
  return Reason::health_quarantined;
}

Reason obstacle_of_machine(const ImplementationRecord& implementation, std::string& text) {
  text = why_unavailable(implementation);
  return text.empty() ? check_features(implementation, text) : Reason::backend_unavailable;
}

Reason obstacle_to_run(const ImplementationRecord& implementation, std::string& text, Probe probe) {
  if (const Reason reason = obstacle_to_use(implementation, text); reason != Reason::none)
    return reason;
  if (probe == Probe::run) {
    const Reason reason = obstacle_of_machine(implementation, text);
    if (reason != Reason::none) return reason;
    text = architecture_refusal(implementation);
    return text.empty() ? Reason::none : Reason::caps_arch;
  }
  text = implementation.backend->unavailable_reason();
  const bool asked = implementation.probe != nullptr && implementation.probe->answered();
  if (text.empty() && asked) text = implementation.probe->why_not();
  return text.empty() ? check_features(implementation, text) : Reason::backend_unavailable;
}

bool can_run(const ImplementationRecord& implementation, Probe probe) {
  std::string text;
  return obstacle_to_run(implementation, text, probe) == Reason::none;
}

}  // namespace opmux::registry
