// X is the dtype of x and y. One group per row.
#define load_x JOIN(load_, X)
#define store_y JOIN(store_, X)

kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void silu_and_mul(
    global char* y, RowLayout to, global const char* x, RowLayout from, long rows, long hidden) {
  for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
    const long start = row_start(&from, row), target = row_start(&to, row);
    for (long i = get_local_id(0); i < hidden; i += LOCAL) {
      const float gate = load_x(x + from.offset, start + i * from.step);
      const float factor = load_x(x + from.offset, start + (hidden + i) * from.step);
      store_y(gate / (1 + exp(-gate)) * factor, y + to.offset, target + i * to.step);
    }
  }
}
