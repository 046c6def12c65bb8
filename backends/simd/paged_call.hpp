// The arguments of paged_attention by name, and the division of its rows into tasks.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <cstdint>

#include "backends/common/paged.hpp"
#include "backends/simd/attend.hpp"
#include "backends/simd/implementation.hpp"

namespace opmux::backends::simd {

struct PagedCall {
  explicit PagedCall(const plugin::Call& call)
      : y(call.tensor(0)),
        q(call.tensor(1)),
        k_cache(call.tensor(2)),
        v_cache(call.tensor(3)),
        sink(call.optional_tensor(10)),
        sequences(q.c(), k_cache.c(), call.tensor(4).c(), call.tensor(5).c(), call.tensor(6).c()) {}

  // Number of heads of q that share one head of the cache.
  int64_t group() const { return q.dim(1) / k_cache.dim(2); }
  int64_t kv_heads() const { return k_cache.dim(2); }
  HeadSizes sizes() const {
    return {static_cast<size_t>(q.dim(2)), static_cast<size_t>(v_cache.dim(3))};
  }
  // Row r of a sequence is head r % group() of query r / group().
  int64_t token(int64_t b, int64_t row) const { return sequences.start(b) + row / group(); }
  int64_t head(int64_t kv_head, int64_t row) const { return kv_head * group() + row % group(); }
  KeyRange range(int64_t b, int64_t row) const {
    return visible_keys(row / group(), sequences.queries(b), sequences.keys(b), options.causal,
                        options.window);
  }
  template <class T>
  T* row_of(const plugin::TensorArg& tensor, int64_t token, int64_t head) const {
    return tensor.data<T>() + token * tensor.stride(0) + head * tensor.stride(1);
  }

  plugin::TensorArg y, q, k_cache, v_cache, sink;
  PagedSequences sequences;
  AttentionOptions options{};
};

// Reads and checks the options and indices; returns an error if one is invalid.
inline int32_t read_paged_options(const plugin::Call& call, PagedCall& args) {
  if (const int32_t outcome = read_options(call, 7, true, args.options); outcome != OPMUX_OK) {
    return outcome;
  }
  if (const Wrong wrong = args.sequences.wrong()) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  return OPMUX_OK;
}

// Splits tokens [first, last), which may belong to several sequences: calls attend(b, row, count)
// with at most `most` rows of one sequence at a time.
template <class Attend>
void for_each_block_of_rows(const PagedCall& call, int64_t first, int64_t last, int64_t most,
                            const Attend& attend) {
  const int64_t group = call.group();
  for (int64_t b = call.sequences.of(first); first < last; ++b) {
    const int64_t start = call.sequences.start(b);
    const int64_t end = std::min(last, call.sequences.start(b + 1));
    for (int64_t row = (first - start) * group; row < (end - start) * group; row += most) {
      attend(b, row, std::min(most, (end - start) * group - row));
    }
    first = end;
  }
}

// Calls attend(kv_head, b, row, count) for all rows of a call, on the threads that the host lends.
template <class Attend>
void attend_in_blocks(const plugin::Call& call, const PagedCall& args, int64_t most,
                      const Attend& attend) {
  const int64_t kv_heads = args.kv_heads(), group = args.group(), tokens = args.q.dim(0);
  const int64_t step = std::max<int64_t>(1, most / group);  // Tokens per task.
  const int64_t cost = cost_of_rows(step * group, args.sequences.most_keys(), args.k_cache.dim(3),
                                    args.v_cache.dim(3));
  for_each_row(call, (tokens + step - 1) / step * kv_heads, cost, [&](int64_t i) {
    const int64_t first = i / kv_heads * step;
    for_each_block_of_rows(
        args, first, std::min(tokens, first + step), most,
        [&](int64_t b, int64_t row, int64_t count) { attend(i % kv_heads, b, row, count); });
  });
}

inline constexpr std::string_view kPagedSignature =
    "paged_attention(out Tensor y[T, HQ, DV], Tensor q[T, HQ, D], "
    "Tensor k_cache[NB, BS, HKV, D], Tensor v_cache[NB, BS, HKV, DV], "
    "Tensor block_table[B, MB], Tensor seq_lens[B], Tensor query_start[B1], "
    "bool causal = true, float? scale, int window = 0, Tensor? sink[HQ], "
    "float softcap = 0) where B1 == B + 1 && HQ % HKV == 0 && window >= 0";

inline plugin::Caps paged_caps() {
  return plugin::Caps{}
      .inner_contiguous("y")
      .inner_contiguous("q")
      .inner_contiguous("k_cache")
      .inner_contiguous("v_cache")
      .dtypes("block_table", {plugin::i32, plugin::i64})
      .dtypes("seq_lens", {plugin::i32, plugin::i64})
      .dtypes("query_start", {plugin::i32, plugin::i64});
}

// The AVX-512 variant; null if it was not compiled.
RunFn paged_attention_without_tiles();

}  // namespace opmux::backends::simd
