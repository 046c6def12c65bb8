#include "kernels.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cuda_example {
namespace {

constexpr int kThreads = 256, kWarp = 32;
constexpr int64_t kMostBlocks = 65535;

__device__ float widen(float value) { return value; }
__device__ float widen(__half value) { return __half2float(value); }
__device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__device__ T narrow(float value);
template <>
__device__ float narrow<float>(float value) {
  return value;
}
template <>
__device__ __half narrow<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

// Sum over all threads of the block, in a fixed order; every thread gets the result.
__device__ float block_sum(float mine) {
  __shared__ float of_warps[kThreads / kWarp];
  __shared__ float total;
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    mine += __shfl_down_sync(0xffffffffu, mine, distance);
  }
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    total = 0;
    for (float part : of_warps) total += part;
  }
  __syncthreads();
  return total;
}

template <class T>
__global__ void rms_norm_rows(RmsNorm what) {
  const T* weight = static_cast<const T*>(what.weight);
  for (int64_t row = blockIdx.x; row < what.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(what.x) + row * what.hidden;
    T* y = static_cast<T*>(what.y) + row * what.hidden;
    float squares = 0;
    for (int64_t i = threadIdx.x; i < what.hidden; i += kThreads) {
      squares += widen(x[i]) * widen(x[i]);
    }
    const float mean = block_sum(squares) / static_cast<float>(what.hidden);
    const float factor = 1 / sqrtf(mean + what.eps);
    for (int64_t i = threadIdx.x; i < what.hidden; i += kThreads) {
      float value = widen(x[i]) * factor;
      if (what.round_before_weight) value = widen(narrow<T>(value));
      if (weight) value *= widen(weight[i]);
      y[i] = narrow<T>(value);
    }
  }
}

template <class T>
__global__ void silu_and_mul_rows(SiluAndMul what) {
  for (int64_t row = blockIdx.x; row < what.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(what.x) + row * 2 * what.hidden;
    T* y = static_cast<T*>(what.y) + row * what.hidden;
    for (int64_t i = threadIdx.x; i < what.hidden; i += kThreads) {
      const float gate = widen(x[i]);
      y[i] = narrow<T>(gate / (1 + expf(-gate)) * widen(x[what.hidden + i]));
    }
  }
}

int blocks_for(int64_t rows) { return static_cast<int>(rows < kMostBlocks ? rows : kMostBlocks); }

}  // namespace

cudaError_t rms_norm(Element element, const RmsNorm& what, cudaStream_t stream) {
  const int blocks = blocks_for(what.rows);
  switch (element) {
    case Element::f32: rms_norm_rows<float><<<blocks, kThreads, 0, stream>>>(what); break;
    case Element::f16: rms_norm_rows<__half><<<blocks, kThreads, 0, stream>>>(what); break;
    case Element::bf16: rms_norm_rows<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(what); break;
  }
  return cudaGetLastError();
}

cudaError_t silu_and_mul(Element element, const SiluAndMul& what, cudaStream_t stream) {
  const int blocks = blocks_for(what.rows);
  switch (element) {
    case Element::f32: silu_and_mul_rows<float><<<blocks, kThreads, 0, stream>>>(what); break;
    case Element::f16: silu_and_mul_rows<__half><<<blocks, kThreads, 0, stream>>>(what); break;
    case Element::bf16:
      silu_and_mul_rows<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(what);
      break;
  }
  return cudaGetLastError();
}

}  // namespace cuda_example
