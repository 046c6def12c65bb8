// X is the dtype of all three tensors. A group computes tiles of LOCAL x LOCAL elements of y and
// reads a and b through local memory. Each row of a RowLayout is a matrix whose rows are a_row,
// b_row or y_row elements apart.
#define load_x JOIN(load_, X)
#define store_y JOIN(store_, X)

typedef struct {
  long matrices, height, width, depth;
  long y_row, a_row, b_row;
} Sizes;

kernel __attribute__((reqd_work_group_size(LOCAL, LOCAL, 1))) void matmul(
    global char* y, RowLayout to, global const char* a, RowLayout left, global const char* b, RowLayout right,
    Sizes sizes) {
  local float a_tile[LOCAL][LOCAL], b_tile[LOCAL][LOCAL];
  const long column_in_tile = get_local_id(0), row_in_tile = get_local_id(1);
  const long across = (sizes.width + LOCAL - 1) / LOCAL;
  const long down = (sizes.height + LOCAL - 1) / LOCAL;
  const long tiles = sizes.matrices * down * across;
  for (long tile = get_group_id(0); tile < tiles; tile += get_num_groups(0)) {
    const long matrix = tile / across / down;
    const long row = tile / across % down * LOCAL + row_in_tile;
    const long column = tile % across * LOCAL + column_in_tile;
    const long a_start = row_start(&left, matrix), b_start = row_start(&right, matrix);
    float sum = 0;
    for (long k = 0; k < sizes.depth; k += LOCAL) {
      const long a_column = k + column_in_tile, b_row = k + row_in_tile;
      a_tile[row_in_tile][column_in_tile] =
          row < sizes.height && a_column < sizes.depth
              ? load_x(a + left.offset, a_start + row * sizes.a_row + a_column * left.step)
              : 0;
      b_tile[row_in_tile][column_in_tile] =
          b_row < sizes.depth && column < sizes.width
              ? load_x(b + right.offset, b_start + b_row * sizes.b_row + column * right.step)
              : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      const long terms = min((long)LOCAL, sizes.depth - k);
      for (long i = 0; i < terms; ++i) {
        sum += a_tile[row_in_tile][i] * b_tile[i][column_in_tile];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < sizes.height && column < sizes.width) {
      store_y(sum, y + to.offset, row_start(&to, matrix) + row * sizes.y_row + column * to.step);
    }
  }
}
