// Products of a few rows with a few keys or values; each vector of a key or value is loaded once
// for all rows. A row's result does not depend on the other rows.
#if defined(OPMUX_BACKENDS_SIMD_TILES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_TILES_INL_HPP
#undef OPMUX_BACKENDS_SIMD_TILES_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_TILES_INL_HPP
#endif

#include <type_traits>

#include "backends/simd/attend.hpp"
#include "backends/simd/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

constexpr size_t kKeyTile = 4;
// As many rows as fit into the registers.
constexpr size_t kRowTile = hn::MaxLanes(F32()) > 8 ? 4 : 2;

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE void store_sums(const V (&v)[4], float* to) {
  for (size_t i = 0; i < 4; ++i) store(v[i], to + i);
}

#else

// to[i] = the sum of lane i over all blocks of four lanes.
template <class D>
HWY_INLINE void store_sum_of_blocks(D d, hn::Vec<D> v, float* to) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}

// to[i] = the sum of the lanes of v[i].
HWY_INLINE void store_sums(const V (&v)[4], float* to) {
  const F32 d;
  const hn::RepartitionToWide<F32> pairs;
  const auto add = [&](V a, V b) {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto first = add(v[0], v[1]), second = add(v[2], v[3]);
  const V lower = hn::BitCast(d, hn::InterleaveLower(pairs, first, second));
  const V upper = hn::BitCast(d, hn::InterleaveUpper(pairs, first, second));
  store_sum_of_blocks(d, hn::Add(lower, upper), to);
}

#endif

// Computes logits [at, at + 4) of R rows: their products with four keys.
template <size_t R, class T>
void multiply_keys(AttendRow<T>* rows, const T* const* keys, size_t at, size_t size) {
  const size_t lanes = hn::Lanes(F32());
  V sums[R][kKeyTile];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(F32());
  }
  const auto add = [&](size_t d, const auto& load_key) {
    V key[kKeyTile];
    HWY_UNROLL(4)
    for (size_t k = 0; k < kKeyTile; ++k) key[k] = load_key(keys[k] + d);
    HWY_UNROLL(4)
    for (size_t r = 0; r < R; ++r) {
      const V q = load(rows[r].q + d);
      HWY_UNROLL(4)
      for (size_t k = 0; k < kKeyTile; ++k) sums[r][k] = hn::MulAdd(q, key[k], sums[r][k]);
    }
  };
  size_t d = 0;
  for (; d + lanes <= size; d += lanes) add(d, [](const T* key) { return load(key); });
  if (d < size) add(d, [&](const T* key) { return load_part(key, size - d); });
  HWY_UNROLL(4)
  for (size_t r = 0; r < R; ++r) store_sums(sums[r], rows[r].logits + at);
}

// For N vectors of R rows, starting at element `d`: rescales the sums and adds the weighted values.
template <size_t R, size_t N, class T, class Load>
HWY_INLINE void add_columns(AttendRow<T>* rows, const T* const* values, size_t count, size_t d,
                            const Load& load_value) {
  const size_t lanes = hn::Lanes(F32());
  V sums[R][N];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(F32());
  }
  for (size_t j = 0; j < count; ++j) {
    V value[N];
    HWY_UNROLL(8)
    for (size_t i = 0; i < N; ++i) value[i] = load_value(values[j] + d + i * lanes);
    HWY_UNROLL(4)
    for (size_t r = 0; r < R; ++r) {
      const V weight = hn::Set(F32(), rows[r].logits[j]);
      HWY_UNROLL(8)
      for (size_t i = 0; i < N; ++i) sums[r][i] = hn::MulAdd(weight, value[i], sums[r][i]);
    }
  }
  HWY_UNROLL(4)
  for (size_t r = 0; r < R; ++r) {
    const V factor = hn::Set(F32(), rows[r].factor);
    HWY_UNROLL(8)
    for (size_t i = 0; i < N; ++i) {
      float* const to = rows[r].values + d + i * lanes;
      store(hn::MulAdd(load(to), factor, sums[r][i]), to);
    }
  }
}

// For R rows: values = values * factor + sum over j < count of logits[j] * values[j].
template <size_t R, class T>
void add_values(AttendRow<T>* rows, const T* const* values, size_t count, size_t size) {
  const size_t lanes = hn::Lanes(F32());
  const auto whole = [](const T* value) { return load(value); };
  size_t d = 0;
  if constexpr (R == 1) {
    for (; d + 8 * lanes <= size; d += 8 * lanes) add_columns<R, 8>(rows, values, count, d, whole);
  }
  for (; d + 4 * lanes <= size; d += 4 * lanes) add_columns<R, 4>(rows, values, count, d, whole);
  for (; d + lanes <= size; d += lanes) add_columns<R, 1>(rows, values, count, d, whole);
  if (d == size) return;
  add_columns<R, 1>(rows, values, count, d,
                    [&](const T* value) { return load_part(value, size - d); });
}

// Calls fn(number of rows, first row) for all rows; the number is a compile-time constant.
template <class Fn>
HWY_INLINE void for_each_tile(size_t rows, const Fn& fn) {
  size_t r = 0;
  for (; r + kRowTile <= rows; r += kRowTile) fn(std::integral_constant<size_t, kRowTile>(), r);
  for (; r + 2 <= rows; r += 2) fn(std::integral_constant<size_t, 2>(), r);
  if (r < rows) fn(std::integral_constant<size_t, 1>(), r);
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
