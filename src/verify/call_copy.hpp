#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <opmux/abi.h>
#include <opmux/tensor.hpp>

#include "schema/schema.hpp"

namespace opmux::verify {

/// A tensor whose elements are converted to double.
struct Tensor {
  DType dtype{};
  std::vector<int64_t> shape;
  std::vector<double> values;  ///< row-major; empty if the tensor is only written
};

/// An argument of a call whose results are compared.
struct ArgumentView {
  std::string_view name;
  bool present = false;
  const Tensor* tensor = nullptr;  ///< null for scalars and absent arguments
  bool written = false;
  bool tied = false;  ///< the schema requires the same dtype for another argument
  int64_t i64 = 0;    ///< integer, bool, or index of an enum value
  double f64 = 0;
};

/// A call whose results are compared: its arguments as they were before the call. Borrows
/// everything.
struct CallView {
  std::string_view op;
  std::vector<ArgumentView> arguments;

  /// Returns an argument by name. An argument that the caller's older schema does not have is
  /// absent.
  const ArgumentView& argument(std::string_view name) const {
    static constexpr ArgumentView kAbsent;
    const auto found = std::ranges::find(arguments, name, &ArgumentView::name);
    return found == arguments.end() ? kAbsent : *found;
  }
  /// Returns a tensor by name; it must be present.
  const Tensor& tensor(std::string_view name) const { return *argument(name).tensor; }
  bool has(std::string_view name) const { return argument(name).present; }
  /// Returns a scalar, or `otherwise` if it is absent.
  double real(std::string_view name, double otherwise) const {
    const ArgumentView& found = argument(name);
    return found.present ? found.f64 : otherwise;
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const ArgumentView& found = argument(name);
    return found.present ? found.i64 : otherwise;
  }
};

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
  JudgedCall(const schema::Schema& schema, const CallCopy& copy);
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
