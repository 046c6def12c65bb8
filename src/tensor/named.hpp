#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace opmux::tensor {

/// A name and the number that it denotes.
struct Named {
  std::string_view name;
  int64_t number;
};

/// All named element types; `number` is DType::packed().
std::vector<Named> named_dtypes();
/// All named device types; `number` is Device::type.
std::vector<Named> named_devices();

}  // namespace opmux::tensor
