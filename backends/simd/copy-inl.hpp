// Converts rows from one float type to another, or copies them bitwise if the types are equal.
#if defined(OPMUX_BACKENDS_SIMD_COPY_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_COPY_INL_HPP
#undef OPMUX_BACKENDS_SIMD_COPY_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_COPY_INL_HPP
#endif

#include <cstring>
#include <type_traits>

#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

using CopyFn = void (*)(const char* from, char* to, size_t count);

template <class From, class To>
void copy_elements(const char* from, char* to, size_t count) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    map(
        reinterpret_cast<To*>(to), count, [](V v) { return v; },
        reinterpret_cast<const From*>(from));
  }
}

// Null if one of the types is not f32, f16 or bf16.
inline CopyFn copy_function(opmux_dtype from, opmux_dtype to) {
  CopyFn fn = nullptr;
  with_element(from, [&]<class From>(Tag<From>) {
    with_element(to, [&]<class To>(Tag<To>) { fn = copy_elements<From, To>; });
  });
  return fn;
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
