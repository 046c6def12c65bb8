#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "point.hpp"

namespace opmux::bench {

/// Filled memory for the tensors of one point, and the arguments of its call.
class Buffers {
 public:
  /// Throws if a constant cannot be created.
  Buffers(Runtime& runtime, const Point& point);

  std::span<const opmux_arg> arguments() const { return arguments_; }
  /// The data of the tensor with that name; null if there is no such tensor.
  void* data(std::string_view name) const;

 private:
  struct Memory {
    std::string name;
    std::vector<char> bytes;
    TensorView view;
  };
  const TensorView& view(const Argument& argument);

  std::deque<Memory> memory_;
  std::deque<Constant> constants_;
  std::vector<opmux_arg> arguments_;
};

}  // namespace opmux::bench
