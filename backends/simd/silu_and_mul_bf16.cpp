// silu_and_mul of bf16 on processors with AVX512_BF16 conversions.
#include <immintrin.h>

#include <limits>

#include "backends/simd/implementation.hpp"
#include "backends/simd/power_of_two.hpp"

namespace opmux::backends::simd {
namespace {

#define OPMUX_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512bf16")))

constexpr Target kAvx512Bf16{"avx512bf16", "avx512f,avx512bw,avx512dq,avx512_bf16", 155};
constexpr __mmask16 kEveryLane = 0xffff;
constexpr int64_t kStep = 32;  // Elements per step.

// v / (1 + exp(-v)), accurate to a few units in the last place of f32. Masked intrinsics are used
// because the unmasked forms start from an undefined value, about which g++ warns.
OPMUX_BF16 inline __m512 silu(__m512 v) {
  constexpr int kSmallerOfMagnitudes = 2;  // With the sign of the first operand.
  const __m512 minus_log2e = _mm512_set1_ps(-1.44269504f);
  const __m512 bounded =
      _mm512_maskz_range_ps(kEveryLane, v, _mm512_set1_ps(87.9f), kSmallerOfMagnitudes);
  // The low bits of a number of this size are its integer part, which is the exponent of 2 here.
  const __m512 size = _mm512_set1_ps(0x1.8p23f);
  const __m512 shifted = _mm512_fmadd_ps(bounded, minus_log2e, size);
  const __m512 part = _mm512_fmadd_ps(bounded, minus_log2e, _mm512_sub_ps(size, shifted));
  const __m512 power = power_of_fraction(part);
  const __m512i exponent = _mm512_maskz_slli_epi32(kEveryLane, _mm512_castps_si512(shifted), 23);
  const __m512 exponential =
      _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(power), exponent));
  const __m512 divisor = _mm512_add_ps(_mm512_set1_ps(1), exponential);
  const __m512 guess = _mm512_maskz_rcp14_ps(kEveryLane, divisor);
  const __m512 off = _mm512_fnmadd_ps(divisor, guess, _mm512_set1_ps(1));
  // For -infinity the exponential is infinite and the product is NaN, as in the reference.
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  const __mmask16 above = _mm512_cmp_ps_mask(v, lowest, _CMP_NEQ_UQ);
  return _mm512_mul_ps(v, _mm512_maskz_fmadd_ps(above, guess, off, guess));
}

OPMUX_BF16 inline __m512 even_places(__m512i both) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kEveryLane, both, 16));
}
OPMUX_BF16 inline __m512 odd_places(__m512i both) {
  return _mm512_castsi512_ps(
      _mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}

// Computes 32 elements of a row; those at even and odd positions are converted separately.
OPMUX_BF16 inline __m512i gate(__m512i x, __m512i factors) {
  const __m512 even = _mm512_mul_ps(silu(even_places(x)), even_places(factors));
  const __m512 odd = _mm512_mul_ps(silu(odd_places(x)), odd_places(factors));
  const __m512i apart = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
  alignas(64) static constexpr uint16_t kTogether[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_maskz_permutexvar_epi16(~0u, _mm512_load_si512(kTogether), apart);
}

OPMUX_BF16 void gate_row(const BF16* x, BF16* y, int64_t count) {
  const BF16* const factors = x + count;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    _mm512_storeu_si512(y + i, gate(_mm512_loadu_si512(x + i), _mm512_loadu_si512(factors + i)));
  }
  if (i == count) return;
  const __mmask32 rest = (1u << (count - i)) - 1;
  const __m512i last =
      gate(_mm512_maskz_loadu_epi16(rest, x + i), _mm512_maskz_loadu_epi16(rest, factors + i));
  _mm512_mask_storeu_epi16(y + i, rest, last);
}

int32_t run_silu_and_mul_bf16(const plugin::Call& call) {
  const plugin::TensorArg y = call.tensor(0), x = call.tensor(1);
  const RowsOf<const BF16> from(x);
  const RowsOf<BF16> to(y);
  for_each_row(call, from.count(), x.dim(-1),
               [&](int64_t r) { gate_row(from[r], to[r], y.dim(-1)); });
  return OPMUX_OK;
}

}  // namespace

void add_silu_and_mul_bf16(plugin::Backend& backend) {
  const Operator op{
      .name = "silu_and_mul",
      .signature = "silu_and_mul(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H",
      .alike = {},
      .caps = plugin::Caps{}
                  .inner_contiguous()
                  .dtypes("y", {plugin::bf16})
                  .dtypes("x", {plugin::bf16})};
  backend.add(implementation(op, kAvx512Bf16).run(run_silu_and_mul_bf16));
}

}  // namespace opmux::backends::simd
