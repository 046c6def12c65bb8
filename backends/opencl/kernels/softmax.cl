// X is the dtype of x and y. One group per row. A row in which every element is -inf becomes zeros.
#define load_x JOIN(load_, X)
#define store_y JOIN(store_, X)

kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void softmax(
    global char* y, RowLayout to, global const char* x, RowLayout from, long rows, long hidden,
    float scale) {
  local float room[LOCAL];
  for (long row = get_group_id(0); row < rows; row += get_num_groups(0)) {
    const long start = row_start(&from, row), target = row_start(&to, row);
    float mine = -INFINITY;
    for (long i = get_local_id(0); i < hidden; i += LOCAL) {
      mine = fmax(mine, load_x(x + from.offset, start + i * from.step) * scale);
    }
    const float largest = group_max(mine, room);
    const float shift = largest == -INFINITY ? 0 : largest;
    float powers = 0;
    for (long i = get_local_id(0); i < hidden; i += LOCAL) {
      powers += exp(load_x(x + from.offset, start + i * from.step) * scale - shift);
    }
    const float sum = group_sum(powers, room);
    const float factor = sum == 0 ? 0 : 1 / sum;
    for (long i = get_local_id(0); i < hidden; i += LOCAL) {
      const float value = load_x(x + from.offset, start + i * from.step) * scale;
      store_y(exp(value - shift) * factor, y + to.offset, target + i * to.step);
    }
  }
}
