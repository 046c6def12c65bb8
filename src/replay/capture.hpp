#pragma once

#include <optional>
#include <vector>

#include "replay/recording.hpp"
#include "schema/arguments.hpp"

namespace opmux::replay {

/// Options of capture().
struct CaptureRules {
  bool inputs = false;             ///< store the elements, not only their digests
  bool spoilt = true;              ///< the call has run and may have overwritten its inputs
  size_t most = size_t{16} << 20;  ///< maximum number of bytes to read in total
};

/// Converts the arguments of a call to a recording. Inputs that the call may have overwritten are
/// recorded without elements. Nullopt if an argument is a list of tensors.
std::optional<std::vector<RecordedArgument>> capture(const schema::Schema& schema,
                                                     const schema::Arguments& arguments,
                                                     const CaptureRules& rules);

/// Stores the digest of the elements in `tensor`, and the elements too if `inputs` is true.
void keep_elements(RecordedTensor& tensor, std::vector<std::byte> elements, bool inputs);

/// Generates elements for input tensors that have none in the file: small random numbers for
/// floating-point types, zeros for integers, which are mostly positions. The result depends only on
/// the file. Returns the names of these tensors. Fails with "replay.size" if a tensor is too large.
Result<std::vector<std::string>> draw_missing_elements(Recording& recording);

}  // namespace opmux::replay
