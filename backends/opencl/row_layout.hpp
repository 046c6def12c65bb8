// The layout of a tensor as passed to kernels; must match struct RowLayout in kernels/elements.cl.
#pragma once

#include <opmux/plugin.hpp>

#include "backends/opencl/handles.hpp"

namespace opmux::backends::opencl {

struct RowLayout {
  cl_long offset = 0;  // In bytes.
  cl_long step = 1;    // In elements.
  cl_long rank = 0;
  cl_long shape[7] = {};
  cl_long strides[7] = {};
};

// The last `inner` dimensions form a row, the others number the rows; adjacent dimensions that can
// be merged are merged. With inner 0 every element is a row.
inline RowLayout layout_of(const plugin::TensorArg& tensor, int inner = 1) {
  RowLayout rows;
  rows.offset = static_cast<cl_long>(tensor.c().byte_offset);
  if (inner > 0) rows.step = tensor.stride(-1);
  for (int i = 0; i < tensor.rank() - inner; ++i) {
    if (tensor.dim(i) == 1) continue;
    const cl_long last = rows.rank - 1;
    if (rows.rank > 0 && rows.strides[last] == tensor.dim(i) * tensor.stride(i)) {
      rows.shape[last] *= tensor.dim(i);
      rows.strides[last] = tensor.stride(i);
      continue;
    }
    rows.shape[rows.rank] = tensor.dim(i);
    rows.strides[rows.rank++] = tensor.stride(i);
  }
  return rows;
}

}  // namespace opmux::backends::opencl
