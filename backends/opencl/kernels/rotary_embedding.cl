// X is the dtype of q and k, T the dtype of the table, P the integer type of positions.
#define load_x JOIN(load_, X)
#define store_x JOIN(store_, X)
#define load_table JOIN(load_, T)

long position_at(global const char* positions, const RowLayout* places, long token) {
  return ((global const P*)(positions + places->offset))[row_start(places, token)];
}

// Sets *wrong to 1 if a position is outside [0, end).
kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void check_positions(
    global const char* positions, RowLayout places, long tokens, long end, global int* wrong) {
  for (long token = get_global_id(0); token < tokens; token += get_global_size(0)) {
    const long position = position_at(positions, &places, token);
    if (position < 0 || position >= end) atomic_or(wrong, 1);
  }
}

typedef struct {
  long tokens, heads, head_step;
  // If neighbours is set, pairs are (2i, 2i + 1), otherwise (i, i + pairs).
  long pairs, neighbours;
  long table_row;
} Turns;

// One group per token. Writes nothing if *wrong is set.
kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void rotate_heads(
    global char* x, RowLayout rows, global const char* positions, RowLayout places,
    global const char* cos_sin, RowLayout table, Turns turns, global const int* wrong) {
  if (*wrong) return;
  for (long token = get_group_id(0); token < turns.tokens; token += get_num_groups(0)) {
    const long start = row_start(&rows, token);
    const long angles = position_at(positions, &places, token) * turns.table_row;
    for (long i = get_local_id(0); i < turns.heads * turns.pairs; i += LOCAL) {
      const long head = start + i / turns.pairs * turns.head_step, pair = i % turns.pairs;
      const float cosine = load_table(cos_sin + table.offset, angles + pair * table.step);
      const float sine =
          load_table(cos_sin + table.offset, angles + (turns.pairs + pair) * table.step);
      const long first = head + (turns.neighbours ? 2 * pair : pair) * rows.step;
      const long second = first + (turns.neighbours ? 1 : turns.pairs) * rows.step;
      const float a = load_x(x + rows.offset, first), b = load_x(x + rows.offset, second);
      store_x(a * cosine - b * sine, x + rows.offset, first);
      store_x(b * cosine + a * sine, x + rows.offset, second);
    }
  }
}
