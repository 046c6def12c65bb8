#pragma once

#include <optional>
#include <vector>

#include "record/recording.hpp"
#include "registry/arguments.hpp"

namespace opmux::record {

struct CaptureRules {
  bool inputs = false;             ///< keep the elements, not only their digests
  bool spoilt = true;              ///< what the call writes may have been written to
  size_t most = size_t{16} << 20;  ///< bytes that are read in all
};

/// The arguments of a call that has ended, as far as they can be told; nothing if one of them is a
/// list of tensors.
std::optional<std::vector<RecordedArgument>> capture(const registry::Schema& schema,
                                                     const registry::Arguments& arguments,
                                                     const CaptureRules& rules);

/// Digest, and the elements themselves if they are wanted.
void keep_elements(RecordedTensor& tensor, std::vector<std::byte> elements, bool inputs);

}  // namespace opmux::record
