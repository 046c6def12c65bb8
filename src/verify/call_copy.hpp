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

/// A copy of one argument of a call. The elements are in the memory of the CallCopy.
struct CopiedArgument {
  uint32_t tag = OPMUX_ARG_NONE;
  bool read = false, written = false;  ///< access to a tensor
  int64_t i64 = 0;                     ///< integer, bool, or index of an enum value
  double f64 = 0;

  // Properties of the original tensor.
  DType dtype{};
  Device device{};
  uint32_t rank = 0;
  std::array<int64_t, OPMUX_MAX_RANK> shape{}, strides{};
  uint32_t misalignment = 0;  ///< address of the first element modulo 4096

  std::span<std::byte> before;  ///< packed elements before the call; empty if it is not read
  std::span<std::byte> after;   ///< packed elements after the call; empty if it is not written

  bool is_tensor() const { return tag == OPMUX_ARG_TENSOR; }
  std::span<const int64_t> dims() const { return {shape.data(), rank}; }
};

/// Why a call cannot be copied.
enum class NoCopy : uint8_t { none, device, arguments };

/// A copy of a call's arguments, taken before and after the call. Keeps no reference to the
/// caller's memory. Move-only.
class CallCopy {
 public:
  /// Returns why a call cannot be copied. It can be copied if its tensors are in CPU memory and
  /// have comparable types, and it has no strings or lists.
  static NoCopy obstacle(const opmux_call& call);
  /// Number of bytes that the copy of a call needs.
  static size_t bytes_of(const opmux_call& call);

  /// Copies the inputs, before the call. Throws std::bad_alloc.
  explicit CallCopy(const opmux_call& call);
  /// Copies the outputs, after the call.
  void take_outputs(const opmux_call& call);

  const std::vector<CopiedArgument>& arguments() const { return arguments_; }
  uint32_t tag() const { return tag_; }
  size_t bytes() const { return bytes_; }
  /// The packed elements of each written tensor, in the order of the arguments.
  std::vector<std::vector<std::byte>> outputs() const;

 private:
  std::vector<CopiedArgument> arguments_;
  std::unique_ptr<std::byte[]> memory_;
  size_t bytes_ = 0;
  uint32_t tag_ = 0;
};

/// Converts a copied call to the CallView that the comparison uses.
class JudgedCall {
 public:
  JudgedCall(const registry::Schema& schema, const CallCopy& copy);
  JudgedCall(const JudgedCall&) = delete;
  JudgedCall& operator=(const JudgedCall&) = delete;

  const CallView& view() const { return view_; }
  /// Makes the comparison treat all outputs as if the reference had to compute them in their dtype.
  void tie_outputs();

 private:
  std::vector<Tensor> tensors_;
  CallView view_;
};

}  // namespace opmux::verify
