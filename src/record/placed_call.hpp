#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <opmux/abi.h>

#include "record/recording.hpp"
#include "registry/arguments.hpp"

namespace opmux::record {

/// Beyond this a call is not made again.
inline constexpr int64_t kMostPlacedBytes = int64_t{1} << 29;

/// The arguments of a recorded call in memory, laid out as they were: strides, alignment, an output
/// in the memory of an input. What belongs to no element that was read holds the bits of a NaN. The
/// arguments must outlive it.
class PlacedCall {
 public:
  /// Fails with "replay.size" if they take too much memory, and with "replay.device" if they do not
  /// lie in the CPU's.
  static Result<PlacedCall> place(const std::vector<RecordedArgument>& arguments);

  std::span<const opmux_arg> arguments() const { return args_; }
  /// A tensor's elements as they are now, row-major without gaps.
  std::vector<std::byte> elements(size_t argument) const;

 private:
  explicit PlacedCall(const std::vector<RecordedArgument>& arguments);
  Status place_tensor(size_t argument);
  std::byte* memory_for(const RecordedTensor& tensor, int64_t bytes, int64_t before);
  void add(size_t argument);

  const std::vector<RecordedArgument>* recorded_;
  int64_t left_ = kMostPlacedBytes;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::byte*> first_;  ///< element of each argument; null if it is no tensor
  std::vector<opmux_tensor> tensors_;
  std::vector<opmux_arg> args_;
};

/// What the schema says of recorded arguments, elements aside: as registry::check_arguments.
Status check_recorded(const registry::Schema& schema,
                      const std::vector<RecordedArgument>& arguments, registry::BoundDims& dims);

}  // namespace opmux::record
