// Packs the keys and values of one head as the right-hand side of oneDNN products: panels of 64
// columns, with as many rows interleaved as fit into four bytes.
#pragma once

#include <cstdint>

#include <oneapi/dnnl/dnnl.hpp>

#include "backends/common/element.hpp"

namespace opmux::backends::onednn {

inline constexpr int64_t kPanelColumns = 64;
inline constexpr int64_t kPanelRows = 32;  // Padded row counts are multiples of this.

inline int64_t round_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

// Descriptor of a packed matrix [rows, columns]; both must be whole numbers of panels.
dnnl::memory::desc panels_desc(int64_t rows, int64_t columns, dnnl::memory::data_type type);

// Packs one panel from column vectors: element (r, c) is from[c * stride + r]. The source has
// `rows` rows and `columns` columns, at most 64; the rest of the panel, up to `all_rows` rows, is
// zero.
template <class T>
void pack_transposed(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t all_rows,
                     T* panel);

// Like pack_transposed, but element (r, c) is from[r * stride + c].
template <class T>
void pack_rows(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t all_rows,
               T* panel);

}  // namespace opmux::backends::onednn
