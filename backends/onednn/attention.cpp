#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "backends/common/attention_mask.hpp"
#include "backends/common/visible_keys.hpp"
#include "backends/onednn/attention_rows.hpp"
#include "backends/onednn/implementations.hpp"
#include "backends/onednn/packed_heads.hpp"
#include "backends/onednn/parts.hpp"
#include "backends/onednn/prepared.hpp"

namespace opmux::backends::onednn {
namespace {

// Size of a block of logits, chosen so that it stays in the cache.
constexpr int64_t kQueries = 128, kKeys = 256;
// With fewer queries, kernels that read keys and values in place are faster than packing them.
constexpr int64_t kFewestQueries = 16;
constexpr int32_t kPriority = 170;
constexpr int32_t kPriorityOfFewQueries = 40;  // After the reference.

struct AttentionSizes {
  explicit AttentionSizes(const plugin::Call& call)
      : batches(call.tensor(1).dim(0)),
        queries(call.tensor(1).dim(1)),
        heads(call.tensor(1).dim(2)),
        keys(call.tensor(2).dim(1)),
        key_heads(call.tensor(2).dim(2)),
        all_keys(round_up(keys, kPanelColumns)),
        key_size(round_up(call.tensor(1).dim(3), kPanelRows)),
        value_size(round_up(call.tensor(3).dim(3), kPanelColumns)) {}

  int64_t query_blocks() const { return (queries + kQueries - 1) / kQueries; }
  int64_t pieces() const { return batches * heads * query_blocks(); }
  int64_t key_blocks() const { return (all_keys + kKeys - 1) / kKeys; }
  int64_t keys_in(int64_t block) const { return std::min(kKeys, all_keys - block * kKeys); }
  int64_t head_elements() const { return all_keys * (key_size + value_size); }
  int64_t all_elements() const { return batches * key_heads * head_elements(); }

  int64_t batches, queries, heads, keys, key_heads;
  int64_t all_keys, key_size, value_size;  // Including the zero padding to whole panels.
};

// The two matrix products of one block: query x key and weight x value.
struct BlockProducts {
  std::unique_ptr<Prepared> logits, values;
};

// Products for full blocks and for the remainders, indexed [query block full, rest][key block full,
// rest].
struct AttentionProducts {
  std::array<std::array<BlockProducts, 2>, 2> all;
  uint64_t scratchpad = 0;

  const BlockProducts& of(int64_t queries, int64_t keys) const {
    return all[queries == kQueries ? 0 : 1][keys == kKeys ? 0 : 1];
  }
};

std::unique_ptr<Prepared> product(int64_t rows, int64_t depth, int64_t width,
                                  dnnl::memory::data_type type) {
  using Desc = dnnl::memory::desc;
  const Desc x({rows, depth}, type, {depth, 1}), w = panels_desc(depth, width, type);
  const Desc y({rows, width}, dnnl::memory::data_type::f32, {width, 1});
  return prepared_product(y, x, w);
}

std::shared_ptr<void> plan_attention(const plugin::Call& call) {
  const ThreadLimit one(1);
  const AttentionSizes sizes(call);
  const auto type = data_type_of(call.tensor(1).dtype());
  auto plan = std::make_shared<AttentionProducts>();
  const auto make = [&](int64_t queries, int64_t keys, BlockProducts& made) {
    if (queries == 0 || keys == 0) return;
    made.logits = product(queries, sizes.key_size, keys, type);
    made.values = product(queries, keys, sizes.value_size, type);
    plan->scratchpad =
        std::max({plan->scratchpad, made.logits->workspace(), made.values->workspace()});
  };
  const int64_t queries[] = {sizes.queries >= kQueries ? kQueries : 0, sizes.queries % kQueries};
  const int64_t keys[] = {sizes.all_keys >= kKeys ? kKeys : 0, sizes.all_keys % kKeys};
  for (size_t q = 0; q < 2; ++q) {
    for (size_t k = 0; k < 2; ++k) make(queries[q], keys[k], plan->all[q][k]);
  }
  return plan;
}

// Scratch memory of one thread while it processes a block of queries. Without a workspace the
// constructor only counts the bytes.
template <class T>
struct QueryRoom {
  QueryRoom(const AttentionSizes& sizes, uint64_t scratchpad_bytes, void* workspace) {
    Parts parts(workspace);
    queries = parts.take<T>(kQueries * sizes.key_size);
    logits = parts.take<float>(kQueries * kKeys);
    weights = parts.take<T>(kQueries * kKeys);
    part = parts.take<float>(kQueries * sizes.value_size);
    sums = parts.take<float>(kQueries * sizes.value_size);
    added = parts.take<float>(kKeys);
    rows = parts.take<RunningRow>(kQueries);
    scratchpad = parts.take<char>(static_cast<int64_t>(scratchpad_bytes));
    bytes = parts.used();
  }
  T *queries, *weights;
  float *logits, *part, *sums, *added;
  RunningRow* rows;
  char* scratchpad;
  uint64_t bytes;
};

int64_t workers_of(const plugin::Call& call, const AttentionSizes& sizes) {
  return call.parallel() ? std::min<int64_t>(call.c().max_threads, sizes.pieces()) : 1;
}

// A block of queries of one head.
struct QueryPiece {
  QueryPiece(const AttentionSizes& sizes, int64_t number)
      : batch(number / sizes.heads % sizes.batches),
        head(number % sizes.heads),
        // The last queries see the most keys. Start with them, so that no thread is left with the
        // longest piece at the end.
        first((sizes.query_blocks() - 1 - number / sizes.heads / sizes.batches) * kQueries),
        count(std::min(kQueries, sizes.queries - first)) {}
  int64_t batch, head, first, count;
};

template <class T>
class Attention {
 public:
  Attention(const plugin::Call& call, const AttentionOptions& options, const AttentionMask& mask)
      : call_(call),
        sizes_(call),
        options_(options),
        mask_(mask),
        products_(*call.prepared<AttentionProducts>()),
        heads_(static_cast<T*>(call.workspace())),
        rooms_(reinterpret_cast<char*>(heads_ + sizes_.all_elements())),
        room_bytes_(QueryRoom<T>(sizes_, products_.scratchpad, nullptr).bytes) {}

  void run() {
    const int64_t blocks = sizes_.key_blocks();
    call_.for_each(sizes_.batches * sizes_.key_heads * blocks,
                   [&](int64_t i) { pack(i / blocks, i % blocks); });
    std::atomic<int64_t> next = 0;
    call_.for_each(workers_of(call_, sizes_), [&](int64_t worker) {
      const ThreadLimit one(1);
      const QueryRoom<T> room(sizes_, products_.scratchpad,
                              rooms_ + static_cast<uint64_t>(worker) * room_bytes_);
      for (int64_t i = next++; i < sizes_.pieces(); i = next++) {
        run_piece(QueryPiece(sizes_, i), room);
      }
    });
  }

 private:
  // The packed keys of a head precede its packed values; both are stored in blocks of kKeys keys.
  T* keys_of(int64_t head, int64_t block) const {
    return heads_ + head * sizes_.head_elements() + block * kKeys * sizes_.key_size;
  }
  T* values_of(int64_t head, int64_t block) const {
    return heads_ + head * sizes_.head_elements() + sizes_.all_keys * sizes_.key_size +
           block * kKeys * sizes_.value_size;
  }

  void pack(int64_t head, int64_t block) {
    const plugin::TensorArg k = call_.tensor(2), v = call_.tensor(3);
    const int64_t batch = head / sizes_.key_heads, h = head % sizes_.key_heads,
                  first = block * kKeys, all = sizes_.keys_in(block),
                  there = std::min(kKeys, sizes_.keys - first);
    const auto at = [&](const plugin::TensorArg& t) {
      return t.data<const T>() + batch * t.stride(0) + first * t.stride(1) + h * t.stride(2);
    };
    for (int64_t j = 0; j < all; j += kPanelColumns) {
      pack_transposed(at(k) + j * k.stride(1), k.stride(1), k.dim(3),
                      std::min(kPanelColumns, there - j), sizes_.key_size,
                      keys_of(head, block) + j * sizes_.key_size);
    }
    for (int64_t d = 0; d < sizes_.value_size; d += kPanelColumns) {
      pack_rows(at(v) + d, v.stride(1), there, std::min(kPanelColumns, v.dim(3) - d), all,
                values_of(head, block) + d * all);
    }
  }

  KeyRange seen_by(int64_t query) const {
    return visible_keys(query, sizes_.queries, sizes_.keys, options_.causal, options_.window);
  }

  void run_piece(const QueryPiece& piece, const QueryRoom<T>& room) {
    load_queries(piece, room);
    std::fill_n(room.rows, piece.count, RunningRow());
    std::fill_n(room.sums, piece.count * sizes_.value_size, 0.0f);
    const int64_t first = seen_by(piece.first).first,
                  last = seen_by(piece.first + piece.count - 1).last;
    for (int64_t block = first / kKeys; block * kKeys < last; ++block) {
      attend(piece, block, room);
    }
    for (int64_t i = 0; i < piece.count; ++i) finish(piece, i, room);
  }

  void load_queries(const QueryPiece& piece, const QueryRoom<T>& room) {
    const plugin::TensorArg q = call_.tensor(1);
    const T* from = q.data<const T>() + piece.batch * q.stride(0) + piece.first * q.stride(1) +
                    piece.head * q.stride(2);
    T* to = room.queries;
    for (int64_t i = 0; i < piece.count; ++i, from += q.stride(1), to += sizes_.key_size) {
      std::fill(std::copy_n(from, q.dim(3), to), to + sizes_.key_size, T{});
    }
  }

  void attend(const QueryPiece& piece, int64_t block, const QueryRoom<T>& room) {
    const int64_t keys = sizes_.keys_in(block), width = sizes_.value_size;
    const int64_t head =
        piece.batch * sizes_.key_heads + piece.head / (sizes_.heads / sizes_.key_heads);
    const BlockProducts& products = products_.of(piece.count, keys);
    products.logits->run_here({room.logits, room.queries, keys_of(head, block)}, room.scratchpad);
    for (int64_t i = 0; i < piece.count; ++i) weigh(piece, block, i, keys, room);
    products.values->run_here({room.part, room.weights, values_of(head, block)}, room.scratchpad);
    for (int64_t i = 0; i < piece.count; ++i) {
      add_part(room.sums + i * width, width, room.rows[i].factor, room.part + i * width);
    }
  }

  // Converts the logits of one query to weights; keys that the query does not see get weight 0.
  void weigh(const QueryPiece& piece, int64_t block, int64_t i, int64_t keys,
             const QueryRoom<T>& room) {
    const int64_t first = block * kKeys, query = piece.first + i;
    const KeyRange range = seen_by(query);
    const int64_t begin = std::clamp<int64_t>(range.first - first, 0, keys),
                  end = std::clamp<int64_t>(range.last - first, begin, keys);
    const int64_t from = begin / kRowStep * kRowStep, to = round_up(end, kRowStep);
    float* const logits = room.logits + i * keys;
    T* const weights = room.weights + i * keys;
    std::fill(weights, weights + from, T{});
    std::fill(weights + to, weights + keys, T{});
    float scale = options_.scale;
    // Multiplying the -inf logit of a hidden key by a smaller scale, or by 0, would not give -inf.
    constexpr float kSmallestScale = 1e-30f;
    if (mask_ || options_.softcap > 0 || !(scale > kSmallestScale)) {
      cap_row(logits + from, to - from, scale, options_.softcap);
      scale = 1;
    }
    if (mask_) {
      mask_.load(piece.batch, piece.head, query, first + begin, end - begin, room.added);
      add_mask(logits + begin, end - begin, room.added);
    }
    std::fill(logits + from, logits + begin, kExcluded);
    std::fill(logits + end, logits + to, kExcluded);
    weigh_row(logits + from, to - from, scale, room.rows[i], weights + from);
  }

  // Adds the sink as one more logit and stores the row; a row that saw no key becomes zeros.
  void finish(const QueryPiece& piece, int64_t i, const QueryRoom<T>& room) {
    const plugin::TensorArg y = call_.tensor(0), sinks = call_.optional_tensor(8);
    const float sink = sinks ? element_at(sinks.c(), piece.head * sinks.stride(0)) : kExcluded;
    const RunningRow& row = room.rows[i];
    T* const to = y.data<T>() + piece.batch * y.stride(0) + (piece.first + i) * y.stride(1) +
                  piece.head * y.stride(2);
    if (row.sum == 0) {
      std::fill_n(to, y.dim(3), T{});
      return;
    }
    const float largest = std::max(row.largest, sink), share = std::exp(row.largest - largest);
    const float total = row.sum * share + std::exp(sink - largest);
    store_scaled(room.sums + i * sizes_.value_size, y.dim(3), share / total, to);
  }

  const plugin::Call& call_;
  const AttentionSizes sizes_;
  const AttentionOptions& options_;
  const AttentionMask& mask_;
  const AttentionProducts& products_;
  T* heads_;     // Packed keys and values.
  char* rooms_;  // One QueryRoom per thread.
  uint64_t room_bytes_;
};

// Calls fn with the Tag of the call's element type: f32 or bf16.
template <class Fn>
void with_type(const plugin::Call& call, const Fn& fn) {
  if (call.tensor(1).is(plugin::f32)) {
    fn(Tag<float>{});
  } else {
    fn(Tag<BF16>{});
  }
}

uint64_t workspace_for(const plugin::Call& call) {
  const AttentionSizes sizes(call);
  uint64_t bytes = 0;
  with_type(call, [&]<class T>(Tag<T>) {
    const QueryRoom<T> room(sizes, call.prepared<AttentionProducts>()->scratchpad, nullptr);
    bytes = static_cast<uint64_t>(sizes.all_elements()) * sizeof(T) +
            static_cast<uint64_t>(workers_of(call, sizes)) * room.bytes;
  });
  return bytes;
}

int32_t run_attention(const plugin::Call& call) {
  const plugin::TensorArg q = call.tensor(1), mask = call.optional_tensor(4);
  const AttentionOptions options = {
      call.boolean(5), static_cast<float>(call.f64(6, default_attention_scale(q.dim(3)))),
      call.i64(7), static_cast<float>(call.f64(9))};
  if (!is_softcap(options.softcap)) {
    return plugin::invalid(call.error(), "attention.softcap", softcap_refusal(options.softcap));
  }
  AttentionMask added;
  const AttentionSizes sizes(call);
  if (mask && !added.broadcast(mask.c(), {sizes.batches, sizes.heads, sizes.queries, sizes.keys})) {
    return plugin::invalid(call.error(), "attention.mask", mask_refusal(mask.c()));
  }
  with_type(call, [&]<class T>(Tag<T>) { Attention<T>(call, options, added).run(); });
  return OPMUX_OK;
}

plugin::Caps prefill_caps() {
  plugin::Caps caps;
  caps.device_type(OPMUX_DEVICE_CPU)
      .cpu_features(kRowFeatures)
      .inner_contiguous("y")
      .inner_contiguous("q")
      .inner_contiguous("k")
      .inner_contiguous("v")
      .dtypes("mask", {plugin::boolean, plugin::f32, plugin::f16, plugin::bf16})
      .dtypes("sink", {plugin::f32, plugin::f16, plugin::bf16})
      .at_least("S", 1)
      .at_least("T", 1)
      .at_least("D", 1)
      .at_most("D", 1024)
      .at_most("DV", 1024)
      .dtypes({plugin::f32, plugin::bf16});
  return caps;
}

}  // namespace

void add_attention(plugin::Backend& backend) {
  plugin::Impl impl{"attention", "prefill"};
  impl.signature(
          "attention(out Tensor y[B, S, HQ, DV], Tensor q[B, S, HQ, D], Tensor k[B, T, HKV, D], "
          "Tensor v[B, T, HKV, DV], Tensor? mask[*], bool causal = false, float? scale, "
          "int window = 0, Tensor? sink[HQ], float softcap = 0) "
          "where HQ % HKV == 0 && window >= 0")
      .caps(prefill_caps())
      .priority(kPriorityOfFewQueries)
      .hint("S", kFewestQueries, 0, kPriority)
      .same_dtype({{OPMUX_FACT_DTYPE, "y"},
                   {OPMUX_FACT_DTYPE, "q"},
                   {OPMUX_FACT_DTYPE, "k"},
                   {OPMUX_FACT_DTYPE, "v"}})
      .plan(plan_attention, {{OPMUX_FACT_DTYPE, "q"},
                             {OPMUX_FACT_DIM, "S"},
                             {OPMUX_FACT_DIM, "T"},
                             {OPMUX_FACT_DIM, "D"},
                             {OPMUX_FACT_DIM, "DV"}})
      .workspace(workspace_for)
      .run(run_attention);
  backend.add(impl);
}

}  // namespace opmux::backends::onednn
