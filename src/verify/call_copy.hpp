#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <opmux/abi.h>
#include <opmux/tensor.hpp>

#include "registry/schema.hpp"
#include "verify/call_view.hpp"

namespace opmux::verify {

/// One argument of a call, with elements of its own.
struct CopiedArgument {
  uint32_t tag = OPMUX_ARG_NONE;
  bool read = false, written = false;  ///< of tensors
  int64_t i64 = 0;                     ///< also bool and enum position
  double f64 = 0;

  // As the call had it.
  DType dtype{};
  Device device{};
  uint32_t rank = 0;
  std::array<int64_t, OPMUX_MAX_RANK> shape{}, strides{};
  uint32_t misalignment = 0;  ///< of its first element, to 4096 bytes

  std::span<std::byte> before;  ///< its elements when the call began, packed; if it is read
  std::span<std::byte> after;   ///< and when it ended; if it is written

  bool is_tensor() const { return tag == OPMUX_ARG_TENSOR; }
  std::span<const int64_t> dims() const { return {shape.data(), rank}; }
};

/// Why a call cannot be copied.
enum class NoCopy : uint8_t { none, device, arguments };

/// The arguments of a call, copied before and after it ran. Never refers to the caller's memory
/// beyond these two moments. Move-only.
class CallCopy {
 public:
  /// Whether such a call can be copied: tensors that this thread can read, of types that can be
  /// compared; no strings, no lists.
  static NoCopy obstacle(const opmux_call& call);
  /// Bytes that the copies of a call take.
  static size_t bytes_of(const opmux_call& call);

  /// Copies what the call reads. Throws std::bad_alloc.
  explicit CallCopy(const opmux_call& call);
  /// Copies what it wrote.
  void take_outputs(const opmux_call& call);

  const std::vector<CopiedArgument>& arguments() const { return arguments_; }
  uint32_t tag() const { return tag_; }
  size_t bytes() const { return bytes_; }
  /// Elements of each written tensor, in the order of arguments.
  std::vector<std::vector<std::byte>> outputs() const;

 private:
  std::vector<CopiedArgument> arguments_;
  std::unique_ptr<std::byte[]> memory_;
  size_t bytes_ = 0;
  uint32_t tag_ = 0;
};

/// A copied call as whoever judges it sees it: plain numbers.
class JudgedCall {
 public:
  JudgedCall(const registry::Schema& schema, const CallCopy& copy);
  JudgedCall(const JudgedCall&) = delete;
  JudgedCall& operator=(const JudgedCall&) = delete;

  const CallView& view() const { return view_; }
  /// From now on outputs are judged as if the reference must have their dtype.
  void tie_outputs();

 private:
  std::vector<Tensor> tensors_;
  CallView view_;
};

}  // namespace opmux::verify
