#pragma once

#include <span>
#include <string_view>

namespace opmux::registry {

/// An operator that opmux itself defines; made from operators/<name>.schema when building.
struct StandardSchema {
  std::string_view name;
  std::string_view text;     ///< the whole file
  std::string_view summary;  ///< its leading comment in one line
  bool data_checked;         ///< its kernels look at data: invalid_argument from one is final
  std::string_view integer;  ///< an output made of 64-bit integers where nobody gives one, or none
};

/// All of them, ordered by name.
std::span<const StandardSchema> standard_schemas();

}  // namespace opmux::registry
