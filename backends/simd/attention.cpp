#include "backends/simd/attend.hpp"
#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/attention.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include "backends/common/attention_mask.hpp"
#include "backends/simd/attend-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// The arguments of attention by name.
struct AttentionCall {
  plugin::TensorArg y, q, k, v, sink;
  AttentionOptions options;
  AttentionMask mask;
};

// Computes rows [first, first + count) of one batch entry and one head of k and v. A row is one
// query of one head of the group; the heads of a query are adjacent.
template <class T>
void attend_group(const AttentionCall& call, int64_t b, int64_t kv_head, int64_t first,
                  int64_t count) {
  const auto& [y, q, k, v, sink, options, mask] = call;
  const int64_t queries = q.dim(1), group = q.dim(2) / k.dim(2);
  const HeadSizes sizes{static_cast<size_t>(q.dim(3)), static_cast<size_t>(v.dim(3))};
  const auto query_of = [&](int64_t r) { return (first + r) / group; };
  const auto head_of = [&](int64_t r) { return kv_head * group + (first + r) % group; };
  AttendRow<T> rows[kMostRows];
  for (int64_t r = 0; r < count; ++r) {
    const int64_t s = query_of(r), h = head_of(r);
    begin_row(rows[r], q.data<const T>() + b * q.stride(0) + s * q.stride(1) + h * q.stride(2),
              sizes);
    rows[r].range = visible_keys(s, queries, k.dim(1), options.causal, options.window);
    rows[r].sink = sink_of(sink, h);
    rows[r].y = y.data<T>() + b * y.stride(0) + s * y.stride(1) + h * y.stride(2);
  }
  const T* const keys = k.data<const T>() + b * k.stride(0) + kv_head * k.stride(2);
  const T* const values = v.data<const T>() + b * v.stride(0) + kv_head * v.stride(2);
  const auto locate = [&](int64_t j, size_t block_size, KeyBlock<T>& block) {
    for (size_t i = 0; i < block_size; ++i, ++j) {
      block.keys[i] = keys + j * k.stride(1);
      block.values[i] = values + j * v.stride(1);
    }
  };
  attend(rows, static_cast<size_t>(count), sizes, options, locate,
         [&](size_t row, int64_t j, size_t block_size, float* to) {
           if (!mask) return false;
           const int64_t r = static_cast<int64_t>(row);
           mask.load(b, head_of(r), query_of(r), j, static_cast<int64_t>(block_size), to);
           return true;
         });
}

int32_t read_attention(const plugin::Call& call, AttentionCall& args) {
  args.y = call.tensor(0);
  args.q = call.tensor(1);
  args.k = call.tensor(2);
  args.v = call.tensor(3);
  args.sink = call.optional_tensor(8);
  const plugin::TensorArg mask = call.optional_tensor(4);
  const int32_t outcome = read_options(call, 5, false, args.options);
  if (outcome != OPMUX_OK || !mask) return outcome;
  if (args.mask.broadcast(mask.c(), {args.q.dim(0), args.q.dim(2), args.q.dim(1), args.k.dim(1)})) {
    return OPMUX_OK;
  }
  return plugin::invalid(call.error(), "attention.mask", mask_refusal(mask.c()));
}

int32_t run_attention(const plugin::Call& call) {
  AttentionCall args;
  if (const int32_t outcome = read_attention(call, args); outcome != OPMUX_OK) return outcome;
  const int64_t kv_heads = args.k.dim(2);
  const int64_t rows = args.q.dim(1) * (args.q.dim(2) / kv_heads);
  const int64_t parts = (rows + kMostRows - 1) / kMostRows;
  const int64_t cost =
      cost_of_rows(std::min(rows, kMostRows), args.k.dim(1), args.k.dim(3), args.v.dim(3));
  return with_dtype(call, {args.y, args.q, args.k, args.v}, [&]<class T>(Tag<T>) {
    for_each_row(call, args.q.dim(0) * kv_heads * parts, cost, [&](int64_t i) {
      const int64_t first = i % parts * kMostRows;
      attend_group<T>(args, i / parts / kv_heads, i / parts % kv_heads, first,
                      std::min(kMostRows, rows - first));
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_attention(plugin::Backend& backend) {
  add(backend,
      {.name = "attention",
       .signature = "attention(out Tensor y[B, S, HQ, DV], Tensor q[B, S, HQ, D], "
                    "Tensor k[B, T, HKV, D], Tensor v[B, T, HKV, DV], Tensor? mask[*], "
                    "bool causal = false, float? scale, int window = 0, Tensor? sink[HQ], "
                    "float softcap = 0) where HQ % HKV == 0 && window >= 0",
       .alike = {dtype_of("y"), dtype_of("q"), dtype_of("k"), dtype_of("v")},
       .caps = plugin::Caps{}
                   .inner_contiguous("y")
                   .inner_contiguous("q")
                   .inner_contiguous("k")
                   .inner_contiguous("v")
                   .at_most("D", kMostHeadSize)
                   .at_most("DV", kMostHeadSize)
                   .dtypes("mask", {plugin::boolean, plugin::f32, plugin::f16, plugin::bf16})},
      OPMUX_SIMD_VARIANTS(run_attention));
}

}  // namespace opmux::backends::simd
#endif
