// Keys and values of one head as second factors of products, in blocks that oneDNN multiplies with:
// panels of 64 columns, whose rows stand in groups that fill four bytes.
#pragma once

#include <cstdint>

#include <oneapi/dnnl/dnnl.hpp>

#include "backends/common/element.hpp"

namespace opmux::backends::onednn {

inline constexpr int64_t kPanelColumns = 64;
inline constexpr int64_t kPanelRows = 32;  // sizes of rows are multiples of this

inline int64_t round_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

// Its weights [rows, columns]; both are whole numbers of panels.
dnnl::memory::desc panels_desc(int64_t rows, int64_t columns, dnnl::memory::data_type type);

// One panel: row r of column c is element r of the vector at from + c * stride. `rows` elements of
// `columns` vectors there are, at most 64; the rest up to `all_rows` rows are zeros.
template <class T>
void pack_transposed(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t all_rows,
                     T* panel);

// The same with row r of column c at from[r * stride + c].
template <class T>
void pack_rows(const T* from, int64_t stride, int64_t rows, int64_t columns, int64_t all_rows,
               T* panel);

}  // namespace opmux::backends::onednn
