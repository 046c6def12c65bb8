#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace opmux::tensor {

/// A word and the number it stands for.
struct Named {
  std::string_view name;
  int64_t number;
};

/// Element types with a name of their own, by DType::packed().
std::vector<Named> named_dtypes();
/// Device types with a name.
std::vector<Named> named_devices();

}  // namespace opmux::tensor
