/// What verify() is given. Part of <opmux/plugin.hpp>.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <opmux/plugin/outcome.hpp>

namespace opmux::plugin {

/// Names a fact for `reads`: the dtype, or the device, of a tensor.
constexpr std::pair<uint32_t, std::string_view> dtype_of(std::string_view arg) {
  return {OPMUX_FACT_DTYPE, arg};
}
constexpr std::pair<uint32_t, std::string_view> device_of(std::string_view arg) {
  return {OPMUX_FACT_DEVICE, arg};
}

/// What a verifier may look at: the facts that it listed.
class Facts {
 public:
  explicit Facts(const opmux_facts& facts) : facts_(&facts) {}

  /// Empty if the fact is absent or was not listed.
  std::optional<int64_t> get(uint32_t kind, std::string_view name) const {
    int64_t value = 0;
    if (facts_->get(facts_->context, kind, str(name), &value) == 0) return std::nullopt;
    return value;
  }
  std::optional<int64_t> dtype(std::string_view arg) const { return get(OPMUX_FACT_DTYPE, arg); }
  std::optional<int64_t> dim(std::string_view name) const { return get(OPMUX_FACT_DIM, name); }
  std::optional<int64_t> scalar(std::string_view arg) const { return get(OPMUX_FACT_SCALAR, arg); }

 private:
  const opmux_facts* facts_;
};

}  // namespace opmux::plugin
