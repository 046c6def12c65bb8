#pragma once

#include <string>
#include <vector>

#include <opmux/caps.hpp>
#include <opmux/status.hpp>

#include "registry/dependencies.hpp"
#include "registry/reason.hpp"

namespace opmux::registry {

/// One capability, compiled against a schema: a fact and what it has to be. A fact that is absent
/// (an optional tensor, a dimension only that tensor mentions) passes.
struct CapabilityCheck {
  Reason reason = Reason::none;
  Predicate predicate;           ///< used if `allowed` is empty
  int64_t mask = -1;             ///< bits of the fact that count: a device's number does not
  std::vector<int64_t> allowed;  ///< else the fact must be one of these
};

/// Caps compiled against a schema. What this machine lacks is found once, at compilation.
struct Capability {
  std::vector<CapabilityCheck> checks;
  Reason machine = Reason::none;  ///< caps_cpu_features, or none
  std::string machine_text;
};

/// Fails with `invalid_argument`, reason "caps.unknown_name" and the nearest name, if caps name an
/// argument or a dimension that the schema does not have; "caps.value" for a value out of range.
Result<Capability> compile_caps(const Caps& caps, const Schema& schema);

/// The first check that fails, or null.
const CapabilityCheck* first_failing(const Capability& capability, const Signature& signature);

/// The check of the device, if that fails, or null.
const CapabilityCheck* failing_device(const Capability& capability, const Signature& signature);

/// "H must be a multiple of 4100, is 4096".
std::string describe_failure(const CapabilityCheck& check, const Signature& signature);

void add_dependencies(const Capability& capability, Dependencies& into);

}  // namespace opmux::registry
