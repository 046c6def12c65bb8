#include "backends/simd/paged_call.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/paged_attention.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/simd/attend-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Finds the keys and values of one head of sequence b.
template <class T>
void locate_paged(const PagedCall& call, int64_t b, int64_t kv_head, int64_t first, size_t count,
                  KeyBlock<T>& block) {
  const auto head_at = [&](const plugin::TensorArg& cache, int64_t j) {
    return cache.data<const T>() + call.sequences.offset(cache.c(), b, j) +
           kv_head * cache.stride(2);
  };
  const int64_t places = call.k_cache.dim(1);
  const int64_t k_step = call.k_cache.stride(1), v_step = call.v_cache.stride(1);
  for (size_t i = 0; i < count;) {
    const int64_t j = first + static_cast<int64_t>(i);
    const size_t last = std::min(count, i + static_cast<size_t>(places - j % places));
    const T* key = head_at(call.k_cache, j);
    const T* value = head_at(call.v_cache, j);
    for (; i < last; ++i, key += k_step, value += v_step) {
      block.keys[i] = key;
      block.values[i] = value;
    }
  }
}

// Computes rows [first, first + count) of sequence b. A row is one query of one head of those that
// share a head of the cache.
template <class T>
void attend_rows(const PagedCall& call, int64_t b, int64_t kv_head, int64_t first, int64_t count) {
  const HeadSizes sizes = call.sizes();
  AttendRow<T> rows[kMostRows];
  for (int64_t r = 0; r < count; ++r) {
    const int64_t token = call.token(b, first + r), h = call.head(kv_head, first + r);
    begin_row(rows[r], call.row_of<const T>(call.q, token, h), sizes);
    rows[r].range = call.range(b, first + r);
    rows[r].sink = sink_of(call.sink, h);
    rows[r].y = call.row_of<T>(call.y, token, h);
  }
  attend(
      rows, static_cast<size_t>(count), sizes, call.options,
      [&](int64_t j, size_t block_size, KeyBlock<T>& block) {
        locate_paged(call, b, kv_head, j, block_size, block);
      },
      [](size_t, int64_t, size_t, float*) { return false; });
}

int32_t run_paged_attention(const plugin::Call& call) {
  PagedCall args(call);
  if (const int32_t outcome = read_paged_options(call, args); outcome != OPMUX_OK) return outcome;
  return with_dtype(call, {args.y, args.q, args.k_cache, args.v_cache}, [&]<class T>(Tag<T>) {
    attend_in_blocks(call, args, kMostRows,
                     [&](int64_t kv_head, int64_t b, int64_t row, int64_t count) {
                       attend_rows<T>(args, b, kv_head, row, count);
                     });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_paged_attention(plugin::Backend& backend) {
  add(backend,
      {.name = "paged_attention",
       .signature = kPagedSignature,
       .alike = {dtype_of("y"), dtype_of("q"), dtype_of("k_cache"), dtype_of("v_cache")},
       .caps = paged_caps().at_most("D", kMostHeadSize).at_most("DV", kMostHeadSize)},
      OPMUX_SIMD_VARIANTS(run_paged_attention));
}

RunFn paged_attention_without_tiles() { return HWY_CHOOSE_AVX3(run_paged_attention); }

}  // namespace opmux::backends::simd
#endif
