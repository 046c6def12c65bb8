#include "registry/reason.hpp"

#include <array>

namespace opmux::registry {
namespace {

constexpr std::array kCatalogue{
    ReasonInfo{Reason::none, "", "Accepted."},
    ReasonInfo{Reason::caps_dtype, "caps.dtype",
               "A tensor has a dtype that the implementation does not support."},
    ReasonInfo{Reason::caps_multiple_of, "caps.multiple_of",
               "A dimension is not a multiple of the required number."},
    ReasonInfo{Reason::caps_at_least, "caps.at_least", "A dimension is too small."},
    ReasonInfo{Reason::caps_at_most, "caps.at_most", "A dimension is too large."},
    ReasonInfo{Reason::caps_equals, "caps.equals", "A dimension does not have the required size."},
    ReasonInfo{Reason::caps_rank, "caps.rank", "A tensor has too few or too many dimensions."},
    ReasonInfo{Reason::caps_contiguous, "caps.contiguous",
               "A tensor is not contiguous (row-major without gaps)."},
    ReasonInfo{Reason::caps_inner_contiguous, "caps.inner_contiguous",
               "A tensor's last dimension does not have stride 1."},
    ReasonInfo{Reason::caps_alignment, "caps.alignment",
               "A tensor's address is not sufficiently aligned."},
    ReasonInfo{Reason::caps_layout, "caps.layout",
               "A tensor's dimensions do not have the required stride order."},
    ReasonInfo{Reason::caps_absent, "caps.absent",
               "The call passes an optional argument that the implementation does not support."},
    ReasonInfo{Reason::caps_present, "caps.present",
               "An optional argument that the implementation needs is absent."},
    ReasonInfo{Reason::caps_scalar, "caps.scalar",
               "An argument has a value that the implementation does not support."},
    ReasonInfo{Reason::caps_device, "caps.device",
               "The tensors are not on the implementation's device."},
    ReasonInfo{Reason::caps_cpu_features, "caps.cpu_features",
               "This CPU lacks a feature that the implementation needs."},
    ReasonInfo{Reason::caps_arch, "caps.arch",
               "The device's architecture is outside the supported range."},
    ReasonInfo{Reason::caps_inference_only, "caps.inference_only",
               "The implementation cannot run while gradients are recorded."},
    ReasonInfo{Reason::caps_deterministic, "caps.deterministic",
               "Deterministic results are required but not guaranteed by the implementation."},
    ReasonInfo{Reason::caps_capture_safe, "caps.capture_safe",
               "A graph is being captured, and the implementation is not capture-safe."},
    ReasonInfo{Reason::caps_instance, "caps.instance",
               "The implementation needs an instance, and the call does not go through one."},
    ReasonInfo{Reason::schema_argument_not_known, "schema.argument_not_known",
               "The call sets an argument that is newer than the implementation."},
    ReasonInfo{Reason::verify_refused, "verify.refused",
               "The implementation's verifier refused the arguments."},
    ReasonInfo{Reason::verify_broken, "verify.broken",
               "The implementation's verifier failed without an answer."},
    ReasonInfo{Reason::backend_unavailable, "backend.unavailable",
               "The backend is not available on this machine."},
    ReasonInfo{Reason::backend_disabled, "backend.disabled", "The backend is disabled."},
    ReasonInfo{Reason::backend_forked, "backend.forked",
               "The backend was used before a fork and cannot work in the child process."},
    ReasonInfo{Reason::policy_denied, "policy.denied", "A policy denies the implementation."},
    ReasonInfo{Reason::policy_vendor_denied, "policy.vendor_denied", "A policy denies the vendor."},
    ReasonInfo{Reason::policy_vendor_not_allowed, "policy.vendor_not_allowed",
               "A policy allows only other vendors."},
    ReasonInfo{Reason::policy_not_allowed, "policy.not_allowed",
               "A policy's allow list does not contain the implementation."},
    ReasonInfo{Reason::policy_outside_require, "policy.outside_require",
               "A policy requires other implementations."},
    ReasonInfo{Reason::policy_outside_order, "policy.outside_order",
               "The implementation is not in the operator's exclusive order."},
    ReasonInfo{Reason::health_device_fatal, "health.device_fatal",
               "The device reported a fatal error; this process can no longer use it."},
    ReasonInfo{Reason::health_open, "health.open",
               "The circuit breaker is open after too many failures."},
    ReasonInfo{Reason::health_quarantined, "health.quarantined",
               "The implementation is quarantined because it is suspected of a crash."},
    ReasonInfo{Reason::call_declined, "call.declined",
               "The implementation declined these arguments when it ran."},
    ReasonInfo{Reason::registry_withdrawn, "registry.withdrawn",
               "The implementation was withdrawn."},
    ReasonInfo{Reason::lock_deviation, "lock.deviation",
               "The frozen runtime's lock has another choice, and strict mode allows no other."},
};

}  // namespace

std::span<const ReasonInfo> reason_catalogue() { return kCatalogue; }

std::string_view code_of(Reason reason) { return kCatalogue[static_cast<size_t>(reason)].code; }

}  // namespace opmux::registry
