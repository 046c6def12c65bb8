#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <opmux/tensor.hpp>

namespace opmux::verify {

/// The elements of a tensor as plain numbers.
struct Tensor {
  DType dtype{};
  std::vector<int64_t> shape;
  std::vector<double> values;  ///< row-major; empty if it is only written
};

/// An argument of a call that is judged.
struct ArgumentView {
  std::string_view name;
  bool present = false;
  const Tensor* tensor = nullptr;  ///< null for scalars and what is absent
  bool written = false;
  bool tied = false;  ///< its dtype is that of other arguments too
  int64_t i64 = 0;    ///< also bool and enum position
  double f64 = 0;
};

/// A call that is judged: what it was given, before it wrote. Borrows everything.
struct CallView {
  std::string_view op;
  std::vector<ArgumentView> arguments;

  /// By name. What a caller of an older schema does not know is absent; a tensor must be present.
  const ArgumentView& argument(std::string_view name) const {
    static constexpr ArgumentView kAbsent;
    const auto found = std::ranges::find(arguments, name, &ArgumentView::name);
    return found == arguments.end() ? kAbsent : *found;
  }
  const Tensor& tensor(std::string_view name) const { return *argument(name).tensor; }
  bool has(std::string_view name) const { return argument(name).present; }
  /// A number, or what it defaults to if it was left out.
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
