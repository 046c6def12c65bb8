// y = a * b for any number of matrices, plus an optional bias; shared by matmul and linear.
#pragma once

#include <opmux/plugin.hpp>

#include "backends/openblas/gemm.hpp"

namespace opmux::backends::openblas {

// A batch of matrix products. The `Rows` members locate the matrices of each batch entry, so the
// offsets of the Blocks are not used.
struct Product {
  Rows y_batches, a_batches, b_batches;
  Block y, a, b;
  const opmux_tensor* bias;  // one element per column, or null
};

// The last two dimensions of a tensor as a matrix; the others number the matrices.
inline Block last_two(const plugin::TensorArg& t) {
  return {&t.c(), 0, t.dim(-2), t.stride(-2), t.dim(-1), t.stride(-1)};
}

// Workspace bytes that run_product() needs for its copies.
uint64_t product_workspace(const plugin::Call& call, const Product& product);

// Returns OPMUX_RESOURCE if the workspace is too small for one thread.
int32_t run_product(const plugin::Call& call, const Product& product);

}  // namespace opmux::backends::openblas
