#include <algorithm>

#include "backends/common/attention_mask.hpp"
#include "backends/common/attention_options.hpp"
#include "backends/common/visible_keys.hpp"
#include "backends/openblas/gemm.hpp"
#include "backends/openblas/implementations.hpp"
#include "backends/openblas/workers.hpp"

namespace opmux::backends::openblas {
namespace {

constexpr int64_t kQueries = 64;  // Queries whose logits are in memory at a time.

// Rows [first, first + count) of one head.
Block head_of(const plugin::TensorArg& t, int64_t batch, int64_t head, int64_t first,
              int64_t count) {
  const int64_t offset = batch * t.stride(0) + first * t.stride(1) + head * t.stride(2);
  return {&t.c(), offset, count, t.stride(1), t.dim(3), t.stride(3)};
}

struct Attention {
  explicit Attention(const plugin::Call& call)
      : y(call.tensor(0)),
        q(call.tensor(1)),
        k(call.tensor(2)),
        v(call.tensor(3)),
        sink(call.optional_tensor(8)) {}

  int64_t heads_per_key() const { return q.dim(2) / k.dim(2); }
  int64_t blocks() const { return (q.dim(1) + kQueries - 1) / kQueries; }
  KeyRange range(int64_t query) const {
    return visible_keys(query, q.dim(1), k.dim(1), options.causal, options.window);
  }
  float sink_of(int64_t head) const {
    return sink ? element_at(sink.c(), head * sink.stride(0)) : kExcluded;
  }

  plugin::TensorArg y, q, k, v, sink;
  AttentionOptions options{};
  AttentionMask mask;
};

// Scratch layout of one thread, in floats: copies of operands that OpenBLAS cannot read or write in
// place, and the logits.
struct Rooms {
  explicit Rooms(const Attention& a) {
    const int64_t queries = std::min(kQueries, a.q.dim(1)), keys = a.k.dim(1);
    const auto floats = [](const Block& m, bool copied) { return copied ? m.rows * m.columns : 0; };
    const Block q = head_of(a.q, 0, 0, 0, queries), y = head_of(a.y, 0, 0, 0, queries);
    const Block k = head_of(a.k, 0, 0, 0, keys), v = head_of(a.v, 0, 0, 0, keys);
    logits = floats(k, needs_copy(k));
    values = logits + queries * keys;
    query = values + floats(v, needs_copy(v));
    result = query + floats(q, needs_copy(q));
    all = result + floats(y, !is_row_major(y));
  }
  int64_t logits, values, query, result, all;  // Offsets; the copy of the keys is at 0.
};

// One task: a block of queries of all heads that share a head of k and v.
struct Piece {
  Piece(const Attention& a, int64_t number)
      : batch(number / a.blocks() / a.k.dim(2)),
        key_head(number / a.blocks() % a.k.dim(2)),
        first(number % a.blocks() * kQueries),
        count(std::min(kQueries, a.q.dim(1) - first)),
        keys{a.range(first).first, a.range(first + count - 1).last} {}

  int64_t key_count() const { return keys.last - keys.first; }

  int64_t batch, key_head, first, count;
  KeyRange keys;  // Keys that at least one of the queries may see.
};

// Converts the products of one query with the task's keys to weights; keys that the query does not
// see get weight 0.
void weigh(const Attention& a, const Piece& piece, int64_t head, int64_t query, float* row) {
  const KeyRange seen = a.range(query);
  float* const logits = row + (seen.first - piece.keys.first);
  const int64_t count = seen.last - seen.first;
  for (int64_t j = 0; j < count; ++j) {
    logits[j] = a.options.logit(logits[j], a.mask.at(piece.batch, head, query, seen.first + j));
  }
  std::fill(row, logits, 0.0f);
  std::fill(logits + count, row + piece.key_count(), 0.0f);
  if (!weights_of_logits(logits, count, a.sink_of(head))) std::fill_n(logits, count, 0.0f);
}

void attend(const Attention& a, const Piece& piece, int64_t head, const Operand& keys,
            const Operand& values, const Rooms& rooms, float* room) {
  const int64_t key_count = piece.key_count();
  const Block q = head_of(a.q, piece.batch, head, piece.first, piece.count);
  const Block y = head_of(a.y, piece.batch, head, piece.first, piece.count);
  const bool in_place = rooms.result == rooms.all;
  float* const weights = room + rooms.logits;
  float* const result = in_place ? first_element<float>(*y.tensor) + y.offset : room + rooms.result;
  const int64_t stride = in_place ? line_stride(y.rows, y.row_stride, y.columns) : y.columns;
  multiply(q.rows, key_count, q.columns, operand(q, room + rooms.query), keys, weights, key_count);
  for (int64_t i = 0; i < q.rows; ++i) {
    weigh(a, piece, head, piece.first + i, weights + i * key_count);
  }
  multiply(y.rows, y.columns, key_count, row_major(weights, key_count), values, result, stride);
  for (int64_t i = 0; i < y.rows; ++i) {
    // A query that sees no key gets zeros, even if the values contain NaN.
    const float* row = weights + i * key_count;
    if (std::all_of(row, row + key_count, [](float w) { return w == 0; })) {
      std::fill_n(result + i * stride, y.columns, 0.0f);
    }
  }
  if (!in_place) store_block(y, result);
}

void run_piece(const Attention& a, const Rooms& rooms, const Piece& piece, float* room) {
  const int64_t first = piece.keys.first, count = piece.key_count();
  const Operand keys =
      transposed(operand(head_of(a.k, piece.batch, piece.key_head, first, count), room));
  const Operand values =
      operand(head_of(a.v, piece.batch, piece.key_head, first, count), room + rooms.values);
  const int64_t heads = a.heads_per_key();
  for (int64_t h = piece.key_head * heads; h < (piece.key_head + 1) * heads; ++h) {
    attend(a, piece, h, keys, values, rooms, room);
  }
}

int64_t pieces(const Attention& a) { return a.q.dim(0) * a.k.dim(2) * a.blocks(); }

int32_t run_attention(const plugin::Call& call) {
  Attention a(call);
  const float scale = default_attention_scale(a.q.dim(3)), softcap = float(call.f64(9));
  a.options = {call.boolean(5), float(call.f64(6, scale)), call.i64(7), softcap};
  if (!is_softcap(softcap)) {
    return plugin::invalid(call.error(), "attention.softcap", softcap_refusal(softcap));
  }
  const plugin::TensorArg mask = call.optional_tensor(4);
  if (mask && !a.mask.broadcast(mask.c(), {a.q.dim(0), a.q.dim(2), a.q.dim(1), a.k.dim(1)})) {
    return plugin::invalid(call.error(), "attention.mask", mask_refusal(mask.c()));
  }
  const Rooms rooms(a);
  return share_out(call, pieces(a), rooms.all,
                   [&](int64_t i, float* room) { run_piece(a, rooms, Piece(a, i), room); });
}

}  // namespace

plugin::Impl attention() {
  constexpr std::string_view kSignature =
      "attention(out Tensor y[B, S, HQ, DV], Tensor q[B, S, HQ, D], Tensor k[B, T, HKV, D], "
      "Tensor v[B, T, HKV, DV], Tensor? mask[*], bool causal = false, float? scale, "
      "int window = 0, Tensor? sink[HQ], float softcap = 0) where HQ % HKV == 0 && window >= 0";
  plugin::Caps caps;
  caps.dtypes("mask", {plugin::boolean, plugin::f32, plugin::f16, plugin::bf16})
      .at_most("T", std::numeric_limits<int32_t>::max())
      .at_most("DV", std::numeric_limits<int32_t>::max());
  return by_gemm("attention", kSignature, "D", caps)
      .workspace([](const plugin::Call& call) {
        const Attention a(call);
        return workspace_of(call, pieces(a), Rooms(a).all);
      })
      .run(run_attention);
}

}  // namespace opmux::backends::openblas
