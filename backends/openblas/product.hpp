// y = a * b with any number of matrices, plus a bias: what matmul and linear share.
#pragma once

#include <opmux/plugin.hpp>

#include "backends/openblas/gemm.hpp"

namespace opmux::backends::openblas {

// `batches` products of matrices that lie the `Rows` of their tensors apart. Block's offset is not
// used.
struct Product {
  Rows y_batches, a_batches, b_batches;
  Block y, a, b;
  const opmux_tensor* bias;  // one element per column, or null
};

// The last two dimensions of a tensor: the others count matrices.
inline Block last_two(const plugin::TensorArg& t) {
  return {&t.c(), 0, t.dim(-2), t.stride(-2), t.dim(-1), t.stride(-1)};
}

// Bytes that run_product() wants for its copies.
uint64_t product_workspace(const plugin::Call& call, const Product& product);

// OPMUX_RESOURCE if the workspace is smaller than that of one thread.
int32_t run_product(const plugin::Call& call, const Product& product);

}  // namespace opmux::backends::openblas
