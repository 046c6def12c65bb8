// Host functions that enqueue the kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cuda_example {

enum class Element { f32, f16, bf16 };

// Contiguous rows of `hidden` elements. rms_norm returns the error of the launch; later errors show
// up on the stream.
struct RmsNorm {
  void* y;
  const void* x;
  const void* weight;  // may be null
  int64_t rows, hidden;
  float eps;
  bool round_before_weight;
};
cudaError_t rms_norm(Element element, const RmsNorm& what, cudaStream_t stream);

// y[row][i] = silu(x[row][i]) * x[row][hidden + i]
struct SiluAndMul {
  void* y;
  const void* x;
  int64_t rows, hidden;
};
cudaError_t silu_and_mul(Element element, const SiluAndMul& what, cudaStream_t stream);

}  // namespace cuda_example
