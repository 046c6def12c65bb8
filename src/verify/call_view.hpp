#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <opmux/tensor.hpp>

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

}  // namespace opmux::verify
