#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::replay {

/// Which calls RecordOptions::dump asks for: "op:layer:step". Operators and layers are patterns
/// separated by commas, a layer is the tag of a call, a step is a number or a range "5-15". A part
/// that is missing or empty fits everything.
struct DumpFilter {
  std::vector<std::string> operators, layers;
  uint64_t first = 0, last = UINT64_MAX;  ///< steps, both included

  /// Fails with `invalid_argument`, "record.dump".
  static Result<DumpFilter> parse(std::string_view text);

  bool fits_operator(std::string_view op) const;
  /// A call without a tag has the layer "".
  bool fits_layer(std::string_view layer) const;
  bool fits_step(uint64_t step) const { return step >= first && step <= last; }
};

}  // namespace opmux::replay
