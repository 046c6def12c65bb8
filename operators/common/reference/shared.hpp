// The reference backend: it defines the meaning of each operator with plain loops. It takes f32,
// f16 and bf16 in any mixture and with any strides, computes in f32 and rounds once.
// operators/NAME/reference.cpp implements one operator; this header has the functions that they
// share.
#pragma once

#include <opmux/plugin.hpp>
#include <string_view>
#include <vector>

namespace opmux::backends::reference {

// The implementations of every folder of operators/ with a reference.cpp; the build generates this
// table.
std::vector<plugin::Impl> implementations();

// Common declarations of all reference implementations: variant name, float tensors on the CPU, and
// flags. They are deterministic and batch invariant because each row is computed alone and in a
// fixed order. Outputs are atomic because memory is allocated and indices are checked before the
// first write.
inline plugin::Impl scalar(std::string_view op, std::string_view signature,
                           plugin::Caps caps = {}) {
  plugin::Impl impl{op, "scalar"};
  impl.signature(signature)
      .caps(caps.dtypes({plugin::f32, plugin::f16, plugin::bf16}).device_type(OPMUX_DEVICE_CPU))
      .flags(OPMUX_IMPL_ATOMIC_OUTPUTS | OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT |
             OPMUX_IMPL_CAPTURE_SAFE);
  return impl;
}

// A vector argument as f32; filled with `if_absent` if the call does not pass it.
std::vector<float> load_vector(const plugin::TensorArg& vector, int64_t size, float if_absent);

// All rows of a tensor as f32, dense.
std::vector<float> load_rows(const plugin::TensorArg& x);

// y = products + bias, row by row; the bias is optional.
void add_bias_and_store(const plugin::TensorArg& y, std::vector<float>& products,
                        const plugin::TensorArg& bias);

// The weight of an RMS norm (argument 2) and its round_before_weight option (argument 4).
class NormWeight {
 public:
  NormWeight(const plugin::Call& call, const plugin::TensorArg& x);

  // row = row / sqrt(mean(row^2) + eps) * weight
  void normalize(std::vector<float>& row, float eps) const;

 private:
  std::vector<float> values_;
  bool round_first_;
  opmux_dtype dtype_;
};

// row = exp(scale * row) / sum(exp(scale * row))
void softmax_row(std::vector<float>& row, float scale);

// y = activation(first half of x) * second half of x, row by row.
void gate_rows(const plugin::TensorArg& y, const plugin::TensorArg& x, float (*activation)(float));

}  // namespace opmux::backends::reference
