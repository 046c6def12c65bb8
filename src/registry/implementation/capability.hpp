#pragma once

#include <optional>
#include <string>
#include <vector>

#include <opmux/implementation.hpp>
#include <opmux/status.hpp>

#include "base/system/cpu_features.hpp"
#include "registry/reason.hpp"
#include "schema/dependencies.hpp"

namespace opmux::registry {

/// One capability, compiled against a schema: a fact and its permitted values. An absent fact (of
/// an optional tensor, or a dimension that only such a tensor has) passes.
struct CapabilityCheck {
  Reason reason = Reason::none;
  schema::Predicate predicate;   ///< used if `allowed` is empty
  int64_t mask = -1;             ///< bits of the fact to compare; excludes the device number
  std::vector<int64_t> allowed;  ///< values that the fact may have
};

/// The architectures that an implementation supports, as dotted numbers; empty = open.
struct ArchRange {
  std::string lowest, highest;
  std::optional<schema::Fact> device;  ///< the device whose architecture counts; nullopt: number 0
  bool limited() const { return !lowest.empty() || !highest.empty(); }
};

/// Caps compiled against a schema. Missing CPU features are determined once, by compile_caps().
struct Capability {
  std::vector<CapabilityCheck> checks;
  Reason machine = Reason::none;  ///< caps_cpu_features if this CPU lacks a feature, else none
  std::string machine_text;
  int32_t device_type = 0;  ///< OPMUX_DEVICE_* of the tensors; 0: any
  ArchRange arch;           ///< see architecture_refusal()
};

/// Fails with `invalid_argument`: reason "caps.unknown_name" if caps name an argument or dimension
/// that the schema does not have (the message suggests the nearest name), "caps.value" for a value
/// that is out of range. `cpu`: the features that may be used, a part of the processor's.
Result<Capability> compile_caps(const Caps& caps, const schema::Schema& schema,
                                const base::CpuFeatures& cpu = base::cpu_features());

/// The first check that fails, or null.
const CapabilityCheck* first_failing(const Capability& capability,
                                     const schema::Signature& signature);

/// The device check if it fails, or null.
const CapabilityCheck* failing_device(const Capability& capability,
                                      const schema::Signature& signature);

/// The failure as text: "H must be a multiple of 4100, is 4096".
std::string describe_failure(const CapabilityCheck& check, const schema::Signature& signature);

void add_dependencies(const Capability& capability, schema::Dependencies& into);

}  // namespace opmux::registry
