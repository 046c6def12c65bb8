// paged_attention of bf16 on AMX tiles.
#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

#include "backends/simd/attend_amx.hpp"
#include "backends/simd/paged_call.hpp"

namespace opmux::backends::simd {
namespace {

// Finds one block of keys and values of one head of sequence b, limited to the keys in `seen`.
// Sixteen keys never cross a cache block, because the block size is a multiple of sixteen.
TileKeys locate_tiles(const PagedCall& call, int64_t b, int64_t kv_head, int64_t first,
                      KeyRange seen) {
  const auto head_at = [&](const plugin::TensorArg& cache, int64_t key) {
    return cache.data<const BF16>() + call.sequences.offset(cache.c(), b, key) +
           kv_head * cache.stride(2);
  };
  TileKeys keys{.keys = {},
                .values = {},
                .key_stride = call.k_cache.stride(1),
                .value_stride = call.v_cache.stride(1),
                .first = std::max<int64_t>(0, seen.first - first),
                .last = std::min(kTileBlock, seen.last - first)};
  for (int64_t i = keys.first / kTileSide; i * kTileSide < keys.last; ++i) {
    keys.keys[i] = head_at(call.k_cache, first + i * kTileSide);
    keys.values[i] = head_at(call.v_cache, first + i * kTileSide);
  }
  return keys;
}

// Computes rows [first, first + count) of sequence b. Returns false if a result contains a NaN.
bool attend_rows_in_tiles(const PagedCall& call, int64_t kv_head, int64_t b, int64_t first,
                          int64_t count) {
  AttendTiles tiles(count, call.q.dim(2), call.v_cache.dim(3), call.options.scale);
  KeyRange seen{std::numeric_limits<int64_t>::max(), 0};
  for (int64_t r = 0; r < count; ++r) {
    const KeyRange range = call.range(b, first + r);
    const int64_t token = call.token(b, first + r), h = call.head(kv_head, first + r);
    tiles.set_row(r, call.row_of<const BF16>(call.q, token, h), range);
    seen = {std::min(seen.first, range.first), std::max(seen.last, range.last)};
  }
  // Blocks begin at multiples of their size, so that a row's sums do not depend on the other rows.
  int64_t at = seen.first / kTileBlock * kTileBlock;
  TileKeys keys = locate_tiles(call, b, kv_head, at, seen);
  for (; at < seen.last; at += kTileBlock) {
    const TileKeys next = locate_tiles(call, b, kv_head, at + kTileBlock, seen);
    tiles.attend(at, keys, next);
    keys = next;
  }
  bool all = true;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t token = call.token(b, first + r), h = call.head(kv_head, first + r);
    all &= tiles.finish(r, sink_of(call.sink, h), call.row_of<BF16>(call.y, token, h));
  }
  return all;
}

int32_t run_paged_attention_amx(const plugin::Call& call) {
  PagedCall args(call);
  if (const int32_t outcome = read_paged_options(call, args); outcome != OPMUX_OK) return outcome;
  std::atomic<bool> nan = false;
  attend_in_blocks(call, args, kTileSide,
                   [&](int64_t kv_head, int64_t b, int64_t row, int64_t count) {
                     if (!attend_rows_in_tiles(args, kv_head, b, row, count)) nan = true;
                   });
  // Tiles multiply values that a row does not see by zero, so a NaN may come from there. Compute
  // the call again without tiles.
  return nan ? paged_attention_without_tiles()(call) : int32_t{OPMUX_OK};
}

int32_t verify_paged_tiles(const plugin::Facts& facts, opmux_error* why) {
  const double softcap = std::bit_cast<double>(facts.scalar("softcap").value_or(0));
  if (softcap != 0) return plugin::decline(why, "simd.softcap", "softcap is not supported");
  return tiles_are_lent(why);
}

}  // namespace

void add_paged_attention_amx(plugin::Backend& backend) {
  if (!paged_attention_without_tiles()) return;
  const Operator op{.name = "paged_attention",
                    .signature = kPagedSignature,
                    .alike = {},
                    .caps = paged_caps()
                                .dtypes("y", {plugin::bf16})
                                .dtypes("q", {plugin::bf16})
                                .dtypes("k_cache", {plugin::bf16})
                                .dtypes("v_cache", {plugin::bf16})
                                .multiple_of("BS", kTileSide)
                                .at_least("D", kTileDepth)
                                .at_most("D", kMostTileDepth)
                                .multiple_of("D", kTileDepth)
                                .at_least("DV", kTileDepth)
                                .at_most("DV", kMostTileDepth)
                                .multiple_of("DV", kTileDepth),
                    // The weights of few rows stay f32, those of many rows are rounded to bf16.
                    .batch_invariant = false};
  backend.add(implementation(op, kAmx)
                  .verify(verify_paged_tiles, {{OPMUX_FACT_SCALAR, "softcap"}})
                  .run(run_paged_attention_amx));
}

}  // namespace opmux::backends::simd
