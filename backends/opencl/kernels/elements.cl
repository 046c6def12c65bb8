// Element access and helper functions; prepended to every kernel source. LOCAL, the number of items
// per group, is defined when a program is built.

// Rows of a strided tensor; must match RowLayout in row_layout.hpp.
typedef struct {
  long offset;  // Bytes to the first element.
  long step;  // Elements between neighbours in a row.
  long rank;
  long shape[7];
  long strides[7];
} RowLayout;

// Offset, in elements, of a row's first element; rows are numbered in row-major order.
long row_start(const RowLayout* rows, long row) {
  long start = 0;
  for (long i = rows->rank - 1; i >= 0; --i) {
    start += row % rows->shape[i] * rows->strides[i];
    row /= rows->shape[i];
  }
  return start;
}

float load_f32(global const char* at, long i) { return ((global const float*)at)[i]; }
void store_f32(float value, global char* at, long i) { ((global float*)at)[i] = value; }

float load_f16(global const char* at, long i) { return vload_half(i, (global const half*)at); }
void store_f16(float value, global char* at, long i) {
  vstore_half_rte(value, i, (global half*)at);
}

float load_bf16(global const char* at, long i) {
  return as_float((uint)((global const ushort*)at)[i] << 16);
}
// Rounds to nearest, ties to even. A NaN is handled apart because rounding it up would carry into
// its exponent.
ushort bits_bf16(float value) {
  const uint bits = as_uint(value);
  if (isnan(value)) return (ushort)(bits >> 16 | 0x40u);
  return (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
void store_bf16(float value, global char* at, long i) {
  ((global ushort*)at)[i] = bits_bf16(value);
}

float round_f32(float value) { return value; }
float round_f16(float value) {
  ushort room;
  vstore_half_rte(value, 0, (half*)&room);
  return vload_half(0, (half*)&room);
}
float round_bf16(float value) { return as_float((uint)bits_bf16(value) << 16); }

// JOIN(load_, X) with -D X=f16 is load_f16.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

// Sum, or maximum, of the values of all items in a group; every item gets the result. The order of
// operations depends only on LOCAL.
float group_sum(float mine, local float* room) {
  const uint item = get_local_id(0);
  room[item] = mine;
  for (uint half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) room[item] += room[item + half_size];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float sum = room[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

float group_max(float mine, local float* room) {
  const uint item = get_local_id(0);
  room[item] = mine;
  for (uint half_size = LOCAL / 2; half_size > 0; half_size /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_size) room[item] = fmax(room[item], room[item + half_size]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float largest = room[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return largest;
}
