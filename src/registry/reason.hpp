#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace opmux::registry {

/// Why a candidate was refused. The codes are stable because programs match them; docs/reasons.md
/// lists them.
enum class Reason : uint8_t {
  none,
  caps_dtype,
  caps_multiple_of,
  caps_at_least,
  caps_at_most,
  caps_equals,
  caps_rank,
  caps_contiguous,
  caps_inner_contiguous,
  caps_alignment,
  caps_layout,
  caps_absent,
  caps_present,
  caps_scalar,
  caps_device,
  caps_cpu_features,
  caps_arch,
  caps_inference_only,
  caps_deterministic,
  caps_capture_safe,
  caps_instance,
  schema_argument_not_known,
  verify_refused,
  verify_broken,
  backend_unavailable,
  backend_disabled,
  backend_forked,
  policy_denied,
  policy_vendor_denied,
  policy_vendor_not_allowed,
  policy_not_allowed,
  policy_outside_require,
  policy_outside_order,
  health_device_fatal,
  health_open,
  health_quarantined,
  call_declined,
  registry_withdrawn,
  lock_deviation,
};

struct ReasonInfo {
  Reason reason;
  std::string_view code;     ///< "caps.multiple_of"
  std::string_view meaning;  ///< one sentence for docs/reasons.md
};

/// All reasons, in order of declaration.
std::span<const ReasonInfo> reason_catalogue();
std::string_view code_of(Reason reason);

}  // namespace opmux::registry
