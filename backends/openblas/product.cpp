#include "backends/openblas/product.hpp"

#include "backends/openblas/one_thread.hpp"
#include "backends/openblas/workers.hpp"

namespace opmux::backends::openblas {

void copy_block(const Block& m, float* to) {
  if (m.column_stride <= m.row_stride || m.rows <= 1) {
    for (int64_t r = 0; r < m.rows; ++r) {
      load_strided(*m.tensor, m.offset + r * m.row_stride, m.column_stride, m.columns,
                   to + r * m.columns);
    }
    return;
  }
  with_element(m.tensor->dtype, [&]<class T>(Tag<T>) {
    const T* from = first_element<const T>(*m.tensor) + m.offset;
    for (int64_t c = 0; c < m.columns; ++c) {
      const T* column = from + c * m.column_stride;
      for (int64_t r = 0; r < m.rows; ++r)
        to[r * m.columns + c] = to_float(column[r * m.row_stride]);
    }
  });
}

namespace {

// A product is cut into tiles that do not depend on the number of threads; threads take them one by
// one.
struct Tiling {
  int64_t height, width;                              // Size of a tile.
  int64_t down, across;                               // Tiles per matrix.
  int64_t count;                                      // Tiles in total.
  int64_t a_floats, b_floats, y_floats, bias_floats;  // Floats copied for one tile.

  int64_t floats() const { return a_floats + b_floats + y_floats + bias_floats; }
};

// Large tiles, because OpenBLAS packs both matrices again for each tile; small tiles if copies are
// made, so that the copies stay in the cache. A single row is not packed, and long lines of b are
// read faster.
Tiling tiling(const Product& p) {
  constexpr int64_t kLine = 8192, kLarge = 1024, kSmall = 256;
  const bool copy_a = needs_copy(p.a), copy_b = needs_copy(p.b), copy_y = !is_row_major(p.y);
  const int64_t side = copy_a || copy_b || copy_y ? kSmall : kLarge;
  Tiling t{};
  t.height = std::min(p.y.rows, side);
  t.width = std::min(p.y.columns, side == kLarge && p.y.rows == 1 ? kLine : side);
  if (t.height == 0 || t.width == 0) return t;
  t.down = (p.y.rows + t.height - 1) / t.height;
  t.across = (p.y.columns + t.width - 1) / t.width;
  t.count = p.y_batches.count() * t.down * t.across;
  t.a_floats = copy_a ? t.height * p.a.columns : 0;
  t.b_floats = copy_b ? p.b.rows * t.width : 0;
  t.y_floats = copy_y ? t.height * t.width : 0;
  t.bias_floats = p.bias ? t.width : 0;
  return t;
}

Block part(const Block& of, int64_t offset, int64_t row, int64_t rows, int64_t column,
           int64_t columns) {
  return {of.tensor, offset + row * of.row_stride + column * of.column_stride,
          rows,      of.row_stride,
          columns,   of.column_stride};
}

void add_bias(const Block& y, float* values, int64_t stride, const opmux_tensor& bias,
              int64_t column, float* room) {
  load_strided(bias, column * bias.strides[0], bias.strides[0], y.columns, room);
  for (int64_t r = 0; r < y.rows; ++r) {
    float* row = values + r * stride;
    for (int64_t c = 0; c < y.columns; ++c) row[c] += room[c];
  }
}

void run_tile(const Product& p, const Tiling& t, int64_t tile, float* room) {
  const int64_t batch = tile / (t.down * t.across);
  const int64_t row = tile / t.across % t.down * t.height, column = tile % t.across * t.width;
  const int64_t rows = std::min(t.height, p.y.rows - row);
  const int64_t columns = std::min(t.width, p.y.columns - column);
  const Block y = part(p.y, p.y_batches.offset(batch), row, rows, column, columns);
  float* const y_room = room + t.a_floats + t.b_floats;
  float* values = t.y_floats > 0 ? y_room : first_element<float>(*y.tensor) + y.offset;
  const int64_t stride = t.y_floats > 0 ? columns : line_stride(p.y.rows, y.row_stride, columns);
  multiply(rows, columns, p.a.columns,
           operand(part(p.a, p.a_batches.offset(batch), row, rows, 0, p.a.columns), room),
           operand(part(p.b, p.b_batches.offset(batch), 0, p.b.rows, column, columns),
                   room + t.a_floats),
           values, stride);
  if (p.bias) add_bias(y, values, stride, *p.bias, column, y_room + t.y_floats);
  if (t.y_floats > 0) store_block(y, values);
}

}  // namespace

uint64_t product_workspace(const plugin::Call& call, const Product& product) {
  const Tiling t = tiling(product);
  return workspace_of(call, t.count, t.floats());
}

int32_t run_product(const plugin::Call& call, const Product& product) {
  const Tiling t = tiling(product);
  return share_out(call, t.count, t.floats(),
                   [&](int64_t tile, float* room) { run_tile(product, t, tile, room); });
}

}  // namespace opmux::backends::openblas
