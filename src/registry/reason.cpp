#include "registry/reason.hpp"

#include <array>

namespace opmux::registry {
namespace {

constexpr std::array kCatalogue{
    ReasonInfo{Reason::none, "", "Accepted."},
    ReasonInfo{Reason::caps_dtype, "caps.dtype",
               "A tensor has an element type that it cannot take."},
    ReasonInfo{Reason::caps_multiple_of, "caps.multiple_of",
               "A dimension must be a multiple of a number."},
    ReasonInfo{Reason::caps_at_least, "caps.at_least", "A dimension is too small."},
    ReasonInfo{Reason::caps_at_most, "caps.at_most", "A dimension is too large."},
    ReasonInfo{Reason::caps_equals, "caps.equals", "A dimension must have one certain size."},
    ReasonInfo{Reason::caps_rank, "caps.rank", "A tensor has too few or too many dimensions."},
    ReasonInfo{Reason::caps_contiguous, "caps.contiguous",
               "A tensor must be row-major without gaps."},
    ReasonInfo{Reason::caps_inner_contiguous, "caps.inner_contiguous",
               "A tensor's last dimension must have stride 1."},
    ReasonInfo{Reason::caps_alignment, "caps.alignment",
               "A tensor's address is not aligned enough."},
    ReasonInfo{Reason::caps_layout, "caps.layout",
               "A tensor's dimensions have another stride order."},
    ReasonInfo{Reason::caps_absent, "caps.absent",
               "An optional argument that it does not honour is given."},
    ReasonInfo{Reason::caps_present, "caps.present",
               "An optional argument that it needs is absent."},
    ReasonInfo{Reason::caps_scalar, "caps.scalar",
               "An argument has a value that it does not honour."},
    ReasonInfo{Reason::caps_device, "caps.device", "The tensors are on another device."},
    ReasonInfo{Reason::caps_cpu_features, "caps.cpu_features",
               "This CPU lacks a feature that it needs."},
    ReasonInfo{Reason::caps_arch, "caps.arch", "The device's architecture is outside its range."},
    ReasonInfo{Reason::caps_inference_only, "caps.inference_only",
               "It cannot run while gradients are recorded."},
    ReasonInfo{Reason::caps_deterministic, "caps.deterministic",
               "Deterministic results are asked for, and it does not promise them."},
    ReasonInfo{Reason::caps_capture_safe, "caps.capture_safe",
               "A graph is being captured, and it may not run then."},
    ReasonInfo{Reason::schema_argument_not_known, "schema.argument_not_known",
               "It was built before an argument that this call sets."},
    ReasonInfo{Reason::verify_refused, "verify.refused", "Its own verifier refused the arguments."},
    ReasonInfo{Reason::verify_broken, "verify.broken", "Its verifier failed instead of answering."},
    ReasonInfo{Reason::backend_unavailable, "backend.unavailable",
               "Its backend cannot work on this machine."},
    ReasonInfo{Reason::backend_disabled, "backend.disabled", "Its backend is switched off."},
    ReasonInfo{Reason::backend_forked, "backend.forked",
               "Its backend was used before a fork and cannot live in the child."},
    ReasonInfo{Reason::policy_denied, "policy.denied", "A policy denies it."},
    ReasonInfo{Reason::policy_vendor_denied, "policy.vendor_denied", "A policy denies its vendor."},
    ReasonInfo{Reason::policy_vendor_not_allowed, "policy.vendor_not_allowed",
               "A policy allows only other vendors."},
    ReasonInfo{Reason::policy_not_allowed, "policy.not_allowed",
               "A policy's allow list does not name it."},
    ReasonInfo{Reason::policy_outside_require, "policy.outside_require",
               "A policy requires others."},
    ReasonInfo{Reason::policy_outside_order, "policy.outside_order",
               "It is not in the operator's exclusive order."},
    ReasonInfo{Reason::health_device_fatal, "health.device_fatal",
               "Its device is lost for this process."},
    ReasonInfo{Reason::health_open, "health.open", "It failed too often and rests."},
    ReasonInfo{Reason::health_quarantined, "health.quarantined", "It is blamed for a crash."},
    ReasonInfo{Reason::call_declined, "call.declined",
               "It declined these very arguments when it ran."},
    ReasonInfo{Reason::registry_withdrawn, "registry.withdrawn", "It was withdrawn."},
    ReasonInfo{Reason::lock_deviation, "lock.deviation",
               "The lock of a frozen runtime has another choice, and strict allows no other."},
};

}  // namespace

std::span<const ReasonInfo> reason_catalogue() { return kCatalogue; }

std::string_view code_of(Reason reason) { return kCatalogue[static_cast<size_t>(reason)].code; }

}  // namespace opmux::registry
