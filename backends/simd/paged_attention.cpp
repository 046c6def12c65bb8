#include "backends/simd/attend.hpp"
#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/paged_attention.cpp"
#include <hwy/foreach_target.h>  // this file again, once per target

#include <hwy/highway.h>

#include "backends/common/paged.hpp"
#include "backends/simd/attend-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// The arguments by name.
struct PagedCall {
  plugin::TensorArg y, q, k_cache, v_cache, sink;
  AttentionOptions options;
  PagedSequences sequences;
};

// Keys and values of one head of sequence b.
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

// Rows [first, first + count) of the queries of sequence b, of each the heads that share a head of
// the cache.
template <class T>
void attend_rows(const PagedCall& call, int64_t b, int64_t kv_head, int64_t first, int64_t count) {
  const auto& [y, q, k, v, sink, options, sequences] = call;
  const int64_t queries = sequences.queries(b), group = q.dim(1) / k.dim(2);
  const HeadSizes sizes{static_cast<size_t>(q.dim(2)), static_cast<size_t>(v.dim(3))};
  AttendRow<T> rows[kMostRows];
  for (int64_t r = 0; r < count; ++r) {
    const int64_t s = (first + r) / group, h = kv_head * group + (first + r) % group;
    const int64_t token = sequences.start(b) + s;
    begin_row(rows[r], q.data<const T>() + token * q.stride(0) + h * q.stride(1), sizes);
    rows[r].range = visible_keys(s, queries, sequences.keys(b), options.causal, options.window);
    rows[r].sink = sink_of(sink, h);
    rows[r].y = y.data<T>() + token * y.stride(0) + h * y.stride(1);
  }
  attend(
      rows, static_cast<size_t>(count), sizes, options,
      [&](int64_t j, size_t block_size, KeyBlock<T>& block) {
        locate_paged(call, b, kv_head, j, block_size, block);
      },
      [](size_t, int64_t, size_t, float*) { return false; });
}

// Tokens [first, last), which may belong to several sequences.
template <class T>
void attend_tokens(const PagedCall& call, int64_t first, int64_t last, int64_t kv_head) {
  const int64_t group = call.q.dim(1) / call.k_cache.dim(2);
  for (int64_t b = call.sequences.of(first); first < last; ++b) {
    const int64_t start = call.sequences.start(b);
    const int64_t end = std::min(last, call.sequences.start(b + 1));
    for (int64_t row = (first - start) * group; row < (end - start) * group; row += kMostRows) {
      attend_rows<T>(call, b, kv_head, row, std::min(kMostRows, (end - start) * group - row));
    }
    first = end;
  }
}

int32_t run_paged_attention(const plugin::Call& call) {
  const plugin::TensorArg q = call.tensor(1), k = call.tensor(2);
  PagedCall args{call.tensor(0),
                 q,
                 k,
                 call.tensor(3),
                 call.optional_tensor(10),
                 {},
                 {q.c(), k.c(), call.tensor(4).c(), call.tensor(5).c(), call.tensor(6).c()}};
  if (const int32_t outcome = read_options(call, 7, true, args.options); outcome != OPMUX_OK) {
    return outcome;
  }
  if (const Wrong wrong = args.sequences.wrong()) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const int64_t kv_heads = k.dim(2), group = q.dim(1) / kv_heads, tokens = q.dim(0);
  const int64_t step = std::max<int64_t>(1, kMostRows / group);  // tokens at a time
  const int64_t cost =
      cost_of_rows(step * group, args.sequences.most_keys(), k.dim(3), args.v_cache.dim(3));
  return with_dtype(call, {args.y, q, k, args.v_cache}, [&]<class T>(Tag<T>) {
    for_each_row(call, (tokens + step - 1) / step * kv_heads, cost, [&](int64_t i) {
      const int64_t first = i / kv_heads * step;
      attend_tokens<T>(args, first, std::min(tokens, first + step), i % kv_heads);
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
       .signature = "paged_attention(out Tensor y[T, HQ, DV], Tensor q[T, HQ, D], "
                    "Tensor k_cache[NB, BS, HKV, D], Tensor v_cache[NB, BS, HKV, DV], "
                    "Tensor block_table[B, MB], Tensor seq_lens[B], Tensor query_start[B1], "
                    "bool causal = true, float? scale, int window = 0, Tensor? sink[HQ], "
                    "float softcap = 0) where B1 == B + 1 && HQ % HKV == 0 && window >= 0",
       .alike = {dtype_of("y"), dtype_of("q"), dtype_of("k_cache"), dtype_of("v_cache")},
       .caps = plugin::Caps{}
                   .inner_contiguous("y")
                   .inner_contiguous("q")
                   .inner_contiguous("k_cache")
                   .inner_contiguous("v_cache")
                   .at_most("D", kMostHeadSize)
                   .at_most("DV", kMostHeadSize)
                   .dtypes("block_table", {plugin::i32, plugin::i64})
                   .dtypes("seq_lens", {plugin::i32, plugin::i64})
                   .dtypes("query_start", {plugin::i32, plugin::i64})},
      OPMUX_SIMD_VARIANTS(run_paged_attention));
}

}  // namespace opmux::backends::simd
#endif
