#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <opmux/abi.h>

#include "replay/recording.hpp"
#include "schema/arguments.hpp"

namespace opmux::replay {

/// Maximum total size of the tensors of a call that can be replayed.
inline constexpr int64_t kMostPlacedBytes = int64_t{1} << 29;

/// The arguments of a recorded call, placed in memory with the recorded strides, alignment and
/// aliasing of outputs with inputs. Padding, gaps and outputs are filled with bytes that are NaN in
/// every float type. The recorded arguments must outlive it.
class PlacedCall {
 public:
  /// Fails with "replay.size" if the tensors need too much memory, and with "replay.device" if one
  /// of them was not in CPU memory.
  static Result<PlacedCall> place(const std::vector<RecordedArgument>& arguments);

  std::span<const opmux_arg> arguments() const { return args_; }
  /// Returns the current elements of a tensor, row-major without gaps.
  std::vector<std::byte> elements(size_t argument) const;

 private:
  explicit PlacedCall(const std::vector<RecordedArgument>& arguments);
  Status place_tensor(size_t argument);
  std::byte* memory_for(const RecordedTensor& tensor, int64_t bytes, int64_t before);
  void add(size_t argument);

  const std::vector<RecordedArgument>* recorded_;
  int64_t left_ = kMostPlacedBytes;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::byte*> first_;  ///< first element of each argument; null for non-tensors
  std::vector<opmux_tensor> tensors_;
  std::vector<opmux_arg> args_;
};

/// Checks recorded arguments against the schema as registry::check_arguments does. Ignores
/// elements.
Status check_recorded(const schema::Schema& schema, const std::vector<RecordedArgument>& arguments,
                      schema::BoundDims& dims);

}  // namespace opmux::replay
