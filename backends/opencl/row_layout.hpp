// How the kernels see a tensor: the struct RowLayout of kernels/elements.cl.
#pragma once

#include <opmux/plugin.hpp>

#include "backends/opencl/handles.hpp"

namespace opmux::backends::opencl {

struct RowLayout {
  cl_long offset = 0;  // bytes
  cl_long step = 1;    // elements
  cl_long rank = 0;
  cl_long shape[7] = {};
  cl_long strides[7] = {};
};

// The last `inner` dimensions are a row, all others count rows; neighbours that lie as one
// dimension would are joined. With inner 0 every element is a row.
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
