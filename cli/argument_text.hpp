#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/operator.hpp>

namespace opmux::cli {

/// Arguments of an operator as a user writes them, in any order:
///
///     x=bf16[32,4096]  x=f32[32,64]{128,1}  x=f16[8]@cuda:1  eps=1e-6  style=gptj  causal=true
///     weight=none      sizes=[1,2,3]        parts=f32[2];f32[3]
///
/// Each tensor gets a distinct address and no data.
class ArgumentTexts {
 public:
  /// Leading outputs are omitted unless they are given.
  explicit ArgumentTexts(const Operator& op);

  /// Reads "name=value". Fails with a message that says what is wrong and how to write it.
  Status read(std::string_view text);
  /// The arguments in schema order, up to the last one given.
  std::span<const opmux_arg> arguments() const { return {args_.data(), count_}; }

 private:
  /// A tensor with the storage for its shape and strides.
  struct Tensor {
    std::array<int64_t, OPMUX_MAX_RANK> shape{}, strides{};
    opmux_tensor c{};
  };

  Status read_value(const ArgumentInfo& info, const std::string& value, opmux_arg& arg);
  Result<const opmux_tensor*> read_tensor(std::string_view text);
  Status read_tensors(std::string_view text, opmux_arg& arg);
  Status read_integers(std::string_view text, opmux_arg& arg);

  Operator op_;
  std::vector<ArgumentInfo> infos_;
  std::vector<opmux_arg> args_;
  size_t count_ = 0;
  // Storage that the arguments point to. Deques, because elements must not move.
  std::deque<Tensor> tensors_;
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> lists_;
  std::deque<std::vector<const opmux_tensor*>> tensor_lists_;
};

}  // namespace opmux::cli
