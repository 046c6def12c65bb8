#pragma once

#include <span>
#include <string_view>

namespace opmux::schema {

/// A standard operator of opmux; the build generates these from operators/NAME/NAME.schema.
struct StandardSchema {
  std::string_view name;
  std::string_view text;     ///< the whole file
  std::string_view summary;  ///< the file's leading comment in one line
  bool data_checked;         ///< kernels validate data, so invalid_argument is final
  std::string_view integer;  ///< name of the output that is inferred as i64, or empty
};

/// All standard operators, ordered by name.
std::span<const StandardSchema> standard_schemas();

}  // namespace opmux::schema
