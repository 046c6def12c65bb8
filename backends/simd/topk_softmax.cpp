#include "backends/simd/implementation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/topk_softmax.cpp"
#include <hwy/foreach_target.h>  // includes this file again, once per target

#include <hwy/highway.h>

#include <cmath>
#include <numeric>

#include "backends/common/descending.hpp"
#include "backends/common/integers.hpp"
#include "backends/simd/experts.hpp"
#include "backends/simd/order-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace opmux::backends::simd::HWY_NAMESPACE {

// Computes ranks and exponentials. A NaN makes the sum NaN, and so does +inf, because inf - inf is
// NaN.
template <class T>
void read_experts(const T* logits, Experts& row) {
  map(row.ranks, row.count, [](V v) { return rank_values(v); }, logits);
  row.largest = max_over(row.ranks, row.count, [](V v) { return v; });
  const V shift = hn::Set(F32(), std::isinf(row.largest) && row.largest < 0 ? 0 : row.largest);
  map(row.powers, row.count, [&](V v) { return exp_or_nan(hn::Sub(v, shift)); }, logits);
  row.sum = sum_over(row.powers, row.count, [](V v, V sum) { return hn::Add(sum, v); });
}

// The first expert from `from` on with this rank; row.count if there is none.
size_t find_rank(const Experts& row, size_t from, float rank) {
  const V wanted = hn::Set(F32(), rank);
  return from +
         find_first(row.ranks + from, row.count - from, [&](V v) { return hn::Eq(v, wanted); });
}

// The expert after `expert` in descending order: the next one of equal rank, otherwise the first of
// the next lower rank.
size_t next_expert(const Experts& row, size_t expert) {
  const float rank = row.ranks[expert];
  const size_t equal = find_rank(row, expert + 1, rank);
  if (equal < row.count) return equal;
  const F32 d;
  const V limit = hn::Set(d, rank), lowest = hn::Set(d, -HUGE_VALF);
  const auto smaller = [&](V v) { return hn::IfThenElse(hn::Lt(v, limit), v, lowest); };
  return find_rank(row, 0, max_over(row.ranks, row.count, smaller));
}

// Moves the `chosen` largest experts to the front of row.order. For few experts, one search each is
// faster than sorting.
void choose(Experts& row, size_t chosen) {
  constexpr size_t kFew = 32;
  if (chosen > kFew) {
    std::iota(row.order, row.order + row.count, int64_t{0});
    std::partial_sort(row.order, row.order + chosen, row.order + row.count, Descending{row.ranks});
    return;
  }
  for (size_t k = 0; k < chosen; ++k) {
    const size_t expert = k == 0 ? find_rank(row, 0, row.largest)
                                 : next_expert(row, static_cast<size_t>(row.order[k - 1]));
    row.order[k] = static_cast<int64_t>(expert);
  }
}

int32_t run_topk_softmax(const plugin::Call& call) {
  const plugin::TensorArg weights = call.tensor(0), ids = call.tensor(1), logits = call.tensor(2);
  const size_t chosen = static_cast<size_t>(weights.dim(-1));
  const bool renormalize = call.boolean(3);
  const Rows to(weights.c()), id_rows(ids.c());
  return with_dtype(call, {logits}, [&]<class T>(Tag<T>) {
    const RowsOf<const T> from(logits);
    for_each_row(call, from.count(), logits.dim(-1) * 4, [&](int64_t r) {
      Experts row;
      row.count = static_cast<size_t>(logits.dim(-1));
      read_experts(from[r], row);
      choose(row, chosen);
      take_weights(row, chosen, renormalize);
      store_row(weights.c(), to.offset(r), static_cast<int64_t>(chosen), row.weights);
      for (size_t k = 0; k < chosen; ++k) {
        put_integer(ids.c(), id_rows.offset(r) + static_cast<int64_t>(k) * ids.stride(-1),
                    row.order[k]);
      }
    });
  });
}

}  // namespace opmux::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmux::backends::simd {

void add_topk_softmax(plugin::Backend& backend) {
  add(backend,
      {.name = "topk_softmax",
       .signature = "topk_softmax(out Tensor weights[..., K], out Tensor ids[..., K], "
                    "Tensor logits[..., E], bool renormalize = false) where K <= E",
       .alike = {},
       .caps = plugin::Caps{}
                   .inner_contiguous("logits")
                   .at_most("E", kMostExperts)
                   .dtypes("ids", {plugin::i32, plugin::i64})},
      OPMUX_SIMD_VARIANTS(run_topk_softmax));
}

}  // namespace opmux::backends::simd
#endif
