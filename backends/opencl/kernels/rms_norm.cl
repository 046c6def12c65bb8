// X is the dtype of x and y, W the dtype of the weight. One group per row.
#define load_x JOIN(load_, X)
#define store_y JOIN(store_, X)
#define load_weight JOIN(load_, W)
#define round_normal JOIN(round_, W)

kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void rms_norm(
    global char* y, RowLayout to, global const char* x, RowLayout from, global const char* weight,
    RowLayout weights, long rows, long hidden, float eps, int has_weight, int round_before_weight) {
  local float room[LOCAL];
  for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
    const long start = row_start(&from, row), target = row_start(&to, row);
    float squares = 0;
    for (long i = get_local_id(0); i < hidden; i += LOCAL) {
      const float value = load_x(x + from.offset, start + i * from.step);
      squares += value * value;
    }
    const float factor = 1 / sqrt(group_sum(squares, room) / hidden + eps);
    for (long i = get_local_id(0); i < hidden; i += LOCAL) {
      float value = load_x(x + from.offset, start + i * from.step) * factor;
      if (round_before_weight) value = round_normal(value);
      if (has_weight) value *= load_weight(weight + weights.offset, i * weights.step);
      store_y(value, y + to.offset, target + i * to.step);
    }
  }
}
