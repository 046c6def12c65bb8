#include "backends/onednn/packed_heads.hpp"

#include <algorithm>

#define OPMUX_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace opmux::backends::onednn {
namespace {

template <class T>
constexpr int64_t kGroup = int64_t{4 / sizeof(T)};  // Rows whose elements are interleaved.

template <class T>
struct Group {
  T rows[kGroup<T>];
};

// Packs one group of interleaved rows across a full panel.
template <class T>
OPMUX_AVX512 void pack_group(const T* row, int64_t stride, Group<T>* to) {
#pragma omp simd
  for (int64_t c = 0; c < kPanelColumns; ++c) {
    for (int64_t i = 0; i < kGroup<T>; ++i) to[c].rows[i] = row[i * stride + c];
  }
}

}  // namespace

dnnl::memory::desc panels_desc(int64_t rows, int64_t columns, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  const bool is_f32 = type == dnnl::memory::data_type::f32;
  return {{rows, columns}, type, is_f32 ? Tag::BA16a64b : Tag::BA16a64b2a};
}

// Reads along each column's vector, because vectors of neighbouring columns are often a power of
// two apart and would compete for the same cache sets.
template <class T>
void pack_transposed(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t all_rows,
                     T* panel) {
  auto* const to = reinterpret_cast<Group<T>*>(panel);
  const int64_t whole = rows / kGroup<T>, all = all_rows / kGroup<T>;
  for (int64_t c = 0; c < kPanelColumns; ++c) {
    const T* const column = from + c * stride;
    const int64_t filled = c < columns ? whole : 0;
    for (int64_t g = 0; g < filled; ++g) {
      Group<T> group;
      for (int64_t i = 0; i < kGroup<T>; ++i) group.rows[i] = column[g * kGroup<T> + i];
      to[g * kPanelColumns + c] = group;
    }
    for (int64_t g = filled; g < all; ++g) to[g * kPanelColumns + c] = {};
    if (c < columns && rows % kGroup<T> != 0)
      to[whole * kPanelColumns + c].rows[0] = column[rows - 1];
  }
}

template <class T>
void pack_rows(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t all_rows,
               T* panel) {
  auto* line = reinterpret_cast<Group<T>*>(panel);
  for (int64_t r = 0; r < all_rows; r += kGroup<T>, line += kPanelColumns) {
    const T* const row = from + r * stride;
    if (r + kGroup<T> <= rows && columns == kPanelColumns) {
      pack_group(row, stride, line);
      continue;
    }
    std::fill_n(line, kPanelColumns, Group<T>{});
    for (int64_t i = 0; i < std::min(kGroup<T>, rows - r); ++i) {
      for (int64_t c = 0; c < columns; ++c) line[c].rows[i] = row[i * stride + c];
    }
  }
}

template void pack_transposed<float>(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void pack_transposed<BF16>(const BF16*, int64_t, int64_t, int64_t, int64_t, BF16*);
template void pack_rows<float>(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void pack_rows<BF16>(const BF16*, int64_t, int64_t, int64_t, int64_t, BF16*);

}  // namespace opmux::backends::onednn
