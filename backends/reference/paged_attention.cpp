#include <algorithm>
#include <string>

#include "backends/common/integers.hpp"
#include "backends/common/rows.hpp"
#include "backends/reference/attend.hpp"
#include "backends/reference/implementations.hpp"

namespace opmux::backends::reference {
namespace {

// The arguments by name.
struct Paged {
  explicit Paged(const plugin::Call& call)
      : y(call.tensor(0)),
        q(call.tensor(1)),
        k_cache(call.tensor(2)),
        v_cache(call.tensor(3)),
        block_table(call.tensor(4)),
        seq_lens(call.tensor(5)),
        query_start(call.tensor(6)) {}

  int64_t sequences() const { return seq_lens.dim(0); }
  int64_t keys(int64_t b) const { return integer_at(seq_lens.c(), b * seq_lens.stride(0)); }
  int64_t start(int64_t b) const { return integer_at(query_start.c(), b * query_start.stride(0)); }
  int64_t block(int64_t b, int64_t i) const {
    return integer_at(block_table.c(), b * block_table.stride(0) + i * block_table.stride(1));
  }

  plugin::TensorArg y, q, k_cache, v_cache, block_table, seq_lens, query_start;
};

int32_t check_queries(const plugin::Call& call, const Paged& args) {
  const int64_t last = args.sequences();
  bool rises = args.start(0) == 0 && args.start(last) == args.q.dim(0);
  for (int64_t b = 0; b < last; ++b) rises = rises && args.start(b) <= args.start(b + 1);
  if (rises) return OPMUX_OK;
  return plugin::invalid(
      call.error(), "paged.query_start",
      "query_start must rise from 0 to T, which is " + std::to_string(args.q.dim(0)));
}

int32_t check_sequence(const plugin::Call& call, const Paged& args, int64_t b) {
  const int64_t places = args.k_cache.dim(1), keys = args.keys(b);
  const std::string sequence = " of sequence " + std::to_string(b);
  if (keys < 0 || keys > args.block_table.dim(1) * places) {
    return plugin::invalid(call.error(), "paged.seq_len",
                           "length " + std::to_string(keys) + sequence + " is outside [0, " +
                               std::to_string(args.block_table.dim(1) * places) + "]");
  }
  for (int64_t i = 0; i * places < keys; ++i) {
    const int64_t block = args.block(b, i);
    if (block >= 0 && block < args.k_cache.dim(0)) continue;
    return plugin::invalid(call.error(), "paged.block",
                           "block " + std::to_string(block) + sequence + " is outside [0, " +
                               std::to_string(args.k_cache.dim(0)) + ")");
  }
  return OPMUX_OK;
}

int32_t check_paged(const plugin::Call& call, const Paged& args) {
  int32_t outcome = check_queries(call, args);
  for (int64_t b = 0; outcome == OPMUX_OK && b < args.sequences(); ++b) {
    outcome = check_sequence(call, args, b);
  }
  return outcome;
}

// One head of one sequence in a cache, by key and place.
auto cached_head(const Paged& args, const plugin::TensorArg& cache, int64_t b, int64_t head) {
  return [&args, &cache, b, head](int64_t j, int64_t d) {
    const int64_t places = cache.dim(1), block = args.block(b, j / places);
    return element_at(cache.c(), block * cache.stride(0) + j % places * cache.stride(1) +
                                     head * cache.stride(2) + d * cache.stride(3));
  };
}

// All queries of one head of one sequence.
void attend_head(const Paged& args, int64_t b, int64_t head, Attend& attend,
                 std::vector<float>& row, std::vector<float>& result) {
  const int64_t first = args.start(b), queries = args.start(b + 1) - first;
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
  AttendOptions options;
  int32_t outcome = read_options(call, 7, true, options);
  if (outcome == OPMUX_OK) outcome = check_paged(call, args);
  if (outcome != OPMUX_OK) return outcome;
  int64_t most_keys = 0;
  for (int64_t b = 0; b < args.sequences(); ++b) most_keys = std::max(most_keys, args.keys(b));
  const int64_t heads = args.q.dim(1), group = heads / args.k_cache.dim(2);
  Attend attend(options, most_keys, args.q.dim(2), args.v_cache.dim(3));
  std::vector<float> row(static_cast<size_t>(args.q.dim(2)));
  std::vector<float> result(static_cast<size_t>(args.v_cache.dim(3)));
  for (int64_t b = 0; b < args.sequences(); ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      if (h % group == 0) {
        attend.load(args.keys(b), cached_head(args, args.k_cache, b, h / group),
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
