// Elements of tensors and where they lie. Goes before the text of every kernel.
// LOCAL, the number of items of a group, is given when a program is built.

// Rows of a strided tensor, as the host describes them: see row_layout.hpp.
typedef struct {
  long offset;  // bytes to the first element
  long step;    // elements between neighbours in a row
  long rank;
  long shape[7];
  long strides[7];
} RowLayout;

// Elements from the tensor's first to the row's first; rows are numbered row-major.
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
// To nearest, ties to even; rounding up a NaN would carry into its exponent.
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

// Adds up, or takes the largest of, what the items of a group hold; all of them get the result.
// The order does not depend on anything but LOCAL.
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
