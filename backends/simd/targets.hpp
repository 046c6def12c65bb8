// The instruction sets that this backend is compiled for, one variant each. A variant always runs
// the code of its target and never selects a better one, because the host does that and can explain
// its choice.
#pragma once

#include <opmux/plugin.hpp>

#include <cstdint>
#include <string_view>

// Highway reads this before its first header. The remaining targets are AVX3 (AVX-512), AVX2, SSE4
// and the emulation, which Highway always compiles.
#ifdef OPMUX_SIMD_AVX2_ONLY
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3 | HWY_SSE4)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif

namespace opmux::backends::simd {

struct Target {
  std::string_view variant;
  // Features that the compiler may use for this target, named as in /proc/cpuinfo.
  std::string_view cpu_features;
  int32_t priority;
};

inline constexpr Target kAvx512{
    "avx512", "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,fma,f16c,aes,pclmulqdq", 150};
inline constexpr Target kAvx2{"avx2", "avx2,bmi1,bmi2,fma,f16c,aes,pclmulqdq", 145};
inline constexpr Target kSse4{"sse4", "sse4_1,sse4_2,ssse3,aes,pclmulqdq", 140};

// Each function adds one implementation per target to the backend.
void add_rms_norm(plugin::Backend& backend);
void add_fused_add_rms_norm(plugin::Backend& backend);
void add_silu_and_mul(plugin::Backend& backend);
void add_silu_and_mul_bf16(plugin::Backend& backend);
void add_layer_norm(plugin::Backend& backend);
void add_gelu_and_mul(plugin::Backend& backend);
void add_linear(plugin::Backend& backend);
void add_linear_amx(plugin::Backend& backend);
void add_matmul(plugin::Backend& backend);
void add_softmax(plugin::Backend& backend);
void add_rotary_embedding(plugin::Backend& backend);
void add_embedding(plugin::Backend& backend);
void add_reshape_and_cache(plugin::Backend& backend);
void add_linear_w4a16(plugin::Backend& backend);
void add_attention(plugin::Backend& backend);
void add_paged_attention(plugin::Backend& backend);
void add_paged_attention_amx(plugin::Backend& backend);
void add_sample(plugin::Backend& backend);
void add_topk_softmax(plugin::Backend& backend);

}  // namespace opmux::backends::simd
