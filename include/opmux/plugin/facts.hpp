/// The argument of verify(). Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// Name a fact for `reads`: the dtype or the device of a tensor argument.
constexpr std::pair<uint32_t, std::string_view> dtype_of(std::string_view arg) {
  return {OPMUX_FACT_DTYPE, arg};
}
constexpr std::pair<uint32_t, std::string_view> device_of(std::string_view arg) {
  return {OPMUX_FACT_DEVICE, arg};
}

/// Facts of a call that a verifier may read: those that its `reads` lists, or all with
/// flags(OPMUX_IMPL_VERIFY_RECORDED). Valid during verify(), on its thread.
///
///   namespace op = opmux::plugin;
///   auto verify = [](const op::Facts& facts, opmux_error* why) -> int32_t {
///     if (facts.dim("D").value_or(0) <= 256) return OPMUX_OK;
///     return op::decline(why, "acme.head_size", "D is at most 256");
///   };
///   op::Impl impl = op::Impl{"attention", "v1"}.verify(verify, {{OPMUX_FACT_DIM, "D"}});
class Facts {
 public:
  explicit Facts(const opmux_facts& facts) : facts_(&facts) {}

  /// The value of a fact (OPMUX_FACT_*), or nullopt if it is absent or not visible.
  std::optional<int64_t> get(uint32_t kind, std::string_view name) const {
    int64_t value = 0;
    if (facts_->get(facts_->context, kind, str(name), &value) == 0) return std::nullopt;
    return value;
  }
  /// Element type (code | bits << 8 | lanes << 16), named dimension, scalar argument; nullopt as
  /// for get().
  std::optional<int64_t> dtype(std::string_view arg) const { return get(OPMUX_FACT_DTYPE, arg); }
  std::optional<int64_t> dim(std::string_view name) const { return get(OPMUX_FACT_DIM, name); }
  std::optional<int64_t> scalar(std::string_view arg) const { return get(OPMUX_FACT_SCALAR, arg); }
  /// Says that verify() reads something besides facts, such as an environment variable: its answer
  /// is then valid for this call only, and opmux logs `what` once.
  void outside(std::string_view what) const { (void)get(OPMUX_FACT_OUTSIDE, what); }

 private:
  const opmux_facts* facts_;
};

}  // namespace opmux::plugin
