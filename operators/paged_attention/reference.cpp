#include <algorithm>
#include <vector>

#include "backends/common/paged.hpp"
#include "backends/common/rows.hpp"
#include "operators/common/reference/attend.hpp"
#include "operators/common/reference/shared.hpp"

namespace opmux::backends::reference {
namespace {

// The arguments of paged_attention by name.
struct Paged {
  explicit Paged(const plugin::Call& call)
      : y(call.tensor(0)),
        q(call.tensor(1)),
        k_cache(call.tensor(2)),
        v_cache(call.tensor(3)),
        sequences(q.c(), k_cache.c(), call.tensor(4).c(), call.tensor(5).c(), call.tensor(6).c()) {}

  plugin::TensorArg y, q, k_cache, v_cache;
  PagedSequences sequences;
};

// Returns a function (j, d) that reads element d of key j, for one head of one sequence in a cache.
auto cached_head(const Paged& args, const plugin::TensorArg& cache, int64_t b, int64_t head) {
  return [&args, &cache, b, head](int64_t j, int64_t d) {
    return element_at(cache.c(), args.sequences.offset(cache.c(), b, j) + head * cache.stride(2) +
                                     d * cache.stride(3));
  };
}

// Computes all queries of one head of one sequence.
void attend_head(const Paged& args, int64_t b, int64_t head, Attend& attend,
                 std::vector<float>& row, std::vector<float>& result) {
  const int64_t first = args.sequences.start(b), queries = args.sequences.queries(b);
  const plugin::TensorArg& q = args.q;
  const plugin::TensorArg& y = args.y;
  for (int64_t s = 0; s < queries; ++s) {
    load_row(q.c(), (first + s) * q.stride(0) + head * q.stride(1), q.dim(2), row.data());
    attend.query(row.data(), s, queries, head, [](int64_t) { return 0.0f; }, result.data());
    store_row(y.c(), (first + s) * y.stride(0) + head * y.stride(1), y.dim(2), result.data());
  }
}

int32_t run_paged_attention(const plugin::Call& call) {
  const Paged args(call);
  const PagedSequences& sequences = args.sequences;
  AttendOptions options;
  int32_t outcome = read_options(call, 7, true, options);
  if (outcome != OPMUX_OK) return outcome;
  if (const Wrong wrong = sequences.wrong()) {
    return plugin::invalid(call.error(), wrong.code, wrong.text);
  }
  const int64_t heads = args.q.dim(1), group = heads / args.k_cache.dim(2);
  Attend attend(options, sequences.most_keys(), args.q.dim(2), args.v_cache.dim(3));
  std::vector<float> row(static_cast<size_t>(args.q.dim(2)));
  std::vector<float> result(static_cast<size_t>(args.v_cache.dim(3)));
  for (int64_t b = 0; b < sequences.count(); ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      if (h % group == 0) {
        attend.load(sequences.keys(b), cached_head(args, args.k_cache, b, h / group),
                    cached_head(args, args.v_cache, b, h / group));
      }
      attend_head(args, b, h, attend, row, result);
    }
  }
  return OPMUX_OK;
}

}  // namespace

plugin::Impl paged_attention() {
  constexpr std::string_view kSignature =
      "paged_attention(out Tensor y[T, HQ, DV], Tensor q[T, HQ, D], "
      "Tensor k_cache[NB, BS, HKV, D], Tensor v_cache[NB, BS, HKV, DV], "
      "Tensor block_table[B, MB], Tensor seq_lens[B], Tensor query_start[B1], "
      "bool causal = true, float? scale, int window = 0, Tensor? sink[HQ], float softcap = 0) "
      "where B1 == B + 1 && HQ % HKV == 0 && window >= 0";
  plugin::Caps caps;
  caps.dtypes("block_table", {plugin::i32, plugin::i64})
      .dtypes("seq_lens", {plugin::i32, plugin::i64})
      .dtypes("query_start", {plugin::i32, plugin::i64});
  return scalar("paged_attention", kSignature, caps).run(run_paged_attention);
}

}  // namespace opmux::backends::reference
