// Attention of a few queries to the keys and values of one head, one block of keys at a time;
// shared by attention and paged_attention.
#if defined(OPMUX_BACKENDS_SIMD_ATTEND_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMUX_BACKENDS_SIMD_ATTEND_INL_HPP
#undef OPMUX_BACKENDS_SIMD_ATTEND_INL_HPP
#else
#define OPMUX_BACKENDS_SIMD_ATTEND_INL_HPP
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/simd/tiles-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Initializes a row before its first key. The query is padded with zeros, so that it can be
// multiplied in whole vectors.
template <class T>
void begin_row(AttendRow<T>& row, const T* q, const HeadSizes& sizes) {
  map(row.q, sizes.key, [](V v) { return v; }, q);
  std::fill(row.q + sizes.key, row.q + kMostHeadSize, 0.0f);
  std::fill_n(row.values, kMostHeadSize, 0.0f);
  row.sum = 0;
  row.largest = kExcluded;
}

// Highway's Tanh returns a number for NaN.
HWY_INLINE V tanh_or_nan(V v) { return hn::IfThenElse(hn::IsNaN(v), v, hn::Tanh(F32(), v)); }

// Converts products to logits; `added` holds the mask's terms, or is null. See
// AttentionOptions::logit.
inline void shape_logits(float* logits, size_t count, const AttentionOptions& options,
                         const float* added) {
  const F32 d;
  const V scale = hn::Set(d, options.scale), cap = hn::Set(d, options.softcap);
  map(logits, count, [&](V v) { return hn::Mul(v, scale); }, logits);
  if (options.softcap > 0) {
    const auto capped = [&](V v) { return hn::Mul(cap, tanh_or_nan(hn::Div(v, cap))); };
    map(logits, count, capped, logits);
  }
  if (!added) return;
  const V excluded = hn::Set(d, kExcluded);
  const auto add = [&](V v, V a) {
    return hn::IfThenElse(hn::Eq(a, excluded), excluded, hn::Add(v, a));
  };
  map(logits, count, add, logits, added);
}

// Converts logits to weights relative to the largest logit so far. Returns true if all weights are
// above zero. The maximum may drop a NaN, but the sum, and with it the row, still becomes NaN.
template <class T>
bool weigh(AttendRow<T>& row, float* logits, size_t count) {
  const auto same = [](V v) { return v; };
  const float largest = std::max(row.largest, max_over(logits, count, same));
  row.factor = largest == row.largest ? 1 : std::exp(row.largest - largest);
  row.largest = largest;
  const V shift = hn::Set(F32(), largest == kExcluded ? 0 : largest);
  map(logits, count, [&](V v) { return exp_or_nan(hn::Sub(v, shift)); }, logits);
  row.sum =
      row.sum * row.factor + sum_over(logits, count, [](V v, V sum) { return hn::Add(sum, v); });
  return max_over(logits, count, [](V v) { return hn::Neg(v); }) < 0;
}

// Adds the values of weights [from, from + count), skipping those of weight zero so that NaN in
// them does not propagate.
template <class T>
void add_seen_values(AttendRow<T>& row, const T* const* values, size_t from, size_t count,
                     size_t size) {
  const T* seen[kKeyBlock];
  size_t kept = 0;
  for (size_t j = from; j < from + count; ++j) {
    if (row.logits[j] == 0) continue;
    row.logits[kept] = row.logits[j];
    seen[kept++] = values[j];
  }
  add_values<1>(&row, seen, kept, size);
}

// Adds the sink as one more logit and stores the row; a row that saw no key becomes zeros.
template <class T>
void finish(const AttendRow<T>& row, size_t size) {
  const float largest = std::max(row.largest, row.sink);
  const float share = std::exp(row.largest - largest);
  const float total = row.sum * share + std::exp(row.sink - largest);
  const V factor = hn::Set(F32(), row.sum == 0 ? 0 : share / total);
  map(row.y, size, [&](V v) { return hn::Mul(v, factor); }, row.values);
}

// Processes keys [first, first + count), at most one block, for rows that see all or some of them.
template <class T, class Mask>
void attend_to_block(AttendRow<T>* rows, size_t row_count, const HeadSizes& sizes,
                     const AttentionOptions& options, const KeyBlock<T>& block, int64_t first,
                     size_t count, const Mask& mask) {
  for_each_tile(row_count, [&](auto tile, size_t r) {
    for (size_t k = 0; k < count; k += kKeyTile) {
      multiply_keys<tile()>(rows + r, block.keys + k, k, sizes.key);
    }
  });
  const int64_t last = first + static_cast<int64_t>(count);
  size_t from[kMostRows], seen[kMostRows];
  bool whole[kMostRows];
  for (size_t r = 0; r < row_count; ++r) {
    AttendRow<T>& row = rows[r];
    const int64_t begin = std::max(first, row.range.first), end = std::min(last, row.range.last);
    from[r] = begin < end ? static_cast<size_t>(begin - first) : 0;
    seen[r] = begin < end ? static_cast<size_t>(end - begin) : 0;
    whole[r] = false;
    if (seen[r] == 0) continue;
    float added[kKeyBlock];
    const bool masked = mask(r, begin, seen[r], added);
    shape_logits(row.logits + from[r], seen[r], options, masked ? added : nullptr);
    whole[r] = weigh(row, row.logits + from[r], seen[r]) && seen[r] == count;
  }
  for_each_tile(row_count, [&](auto tile, size_t r) {
    if (std::all_of(whole + r, whole + r + tile(), [](bool w) { return w; })) {
      return add_values<tile()>(rows + r, block.values, count, sizes.value);
    }
    for (size_t i = r; i < r + tile(); ++i) {
      if (seen[i] > 0) add_seen_values(rows[i], block.values, from[i], seen[i], sizes.value);
    }
  });
}

// Processes all keys that the rows see. locate(first, count, block) finds keys and values; mask(r,
// first, count, to) writes the mask's terms for row r, or returns false if there is no mask.
template <class T, class Locate, class Mask>
void attend(AttendRow<T>* rows, size_t row_count, const HeadSizes& sizes,
            const AttentionOptions& options, const Locate& locate, const Mask& mask) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (size_t r = 0; r < row_count; ++r) {
    first = std::min(first, rows[r].range.first);
    last = std::max(last, rows[r].range.last);
  }
  // Blocks begin at multiples of their size, so that a row's sums do not depend on the other rows.
  KeyBlock<T> block;
  while (first < last) {
    const int64_t end = std::min(last, (first / kKeyBlock + 1) * kKeyBlock);
    const size_t count = static_cast<size_t>(end - first);
    locate(first, count, block);
    std::fill(block.keys + count, block.keys + (count + kKeyTile - 1) / kKeyTile * kKeyTile,
              block.keys[0]);
    attend_to_block(rows, row_count, sizes, options, block, first, count, mask);
    first = end;
  }
  for (size_t r = 0; r < row_count; ++r) finish(rows[r], sizes.value);
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
