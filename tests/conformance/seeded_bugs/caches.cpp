#include <algorithm>
#include <bit>
#include <cmath>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

// paged_attention

constexpr size_t kY = 0, kKeys = 2, kValues = 3, kTable = 4, kLengths = 5, kStarts = 6, kCausal = 7,
                 kScale = 8, kWindow = 9, kSink = 10;

int32_t table_row_stride_ignored(Faulty& f) {
  f.stride(kTable, 0) = f.dim(kTable, 1);
  return f.right();
}
int32_t first_table_for_all(Faulty& f) {
  if (f.dim(kTable, 0) == 2) f.stride(kTable, 0) = 0;
  return f.right();
}
int32_t length_one_short(Faulty& f) {
  return f.with_integers(kLengths, [](int64_t n, int64_t) { return n > 30 ? n - 1 : n; });
}
int32_t last_block_read_whole(Faulty& f) {
  const int64_t places = f.dim(kKeys, 1);
  return f.with_integers(
      kLengths, [=](int64_t n, int64_t) { return n > 0 && n % places == places - 1 ? n + 1 : n; });
}
int32_t window_one_wider(Faulty& f) {
  if (f.i64(kWindow) != 0) ++f.i64(kWindow);
  return f.right();
}
int32_t window_ignored_if_not_causal(Faulty& f) {
  if (f.i64(kCausal) == 0) f.i64(kWindow) = 0;
  return f.right();
}
int32_t prefill_not_causal(Faulty& f) {
  if (f.dim(kY, 0) > f.dim(kLengths, 0)) f.i64(kCausal) = 0;
  return f.right();
}
int32_t paged_sink_ignored(Faulty& f) {
  if (f.dim(kLengths, 0) > 2) f.drop(kSink);
  return f.right();
}
int32_t negative_scale_made_positive(Faulty& f) {
  if (f.has(kScale)) f.set(kScale, std::abs(f.f64(kScale)));
  return f.right();
}
int32_t values_have_the_strides_of_keys(Faulty& f) {
  for (int d = 0; d < 4; ++d) f.stride(kValues, d) = f.stride(kKeys, d);
  return f.right();
}
int32_t empty_sequences_unwritten(Faulty& f) {
  const int64_t heads = f.dim(kY, 1);
  return f.leaving(kY, [&](int64_t row, int64_t) {
    for (int64_t b = 0; b < f.dim(kLengths, 0); ++b) {
      const int64_t token = row / heads;
      const bool mine = token >= f.get_int(kStarts, b) && token < f.get_int(kStarts, b + 1);
      if (mine) return f.get_int(kLengths, b) == 0;
    }
    return false;
  });
}
int32_t blocks_in_8_bits(Faulty& f) {
  return f.with_integers(kTable, [](int64_t n, int64_t) { return n > 7 ? n & 7 : n; });
}

// reshape_and_cache

constexpr size_t kKCache = 0, kVCache = 1, kK = 2, kSlots = 4;

template <class Change>
int32_t with_slots(Faulty& f, Change change) {
  return f.with_integers(kSlots, change);
}
int32_t negative_slots_count_from_the_end(Faulty& f) {
  const int64_t places = f.dim(kKCache, 0) * f.dim(kKCache, 1);
  return with_slots(f, [=](int64_t s, int64_t) { return s < 0 ? places + s : s; });
}
int32_t slots_too_large_skipped(Faulty& f) {
  const int64_t places = f.dim(kKCache, 0) * f.dim(kKCache, 1);
  return with_slots(f, [=](int64_t s, int64_t) { return s >= places ? -1 : s; });
}
int32_t first_of_two_stays(Faulty& f) {
  return with_slots(f, [&](int64_t s, int64_t t) {
    for (int64_t before = 0; before < t; ++before) {
      if (f.get_int(kSlots, before) == s) return int64_t{-1};
    }
    return s;
  });
}
int32_t last_slot_of_a_block_shifted(Faulty& f) {
  const int64_t places = f.dim(kKCache, 1);
  if (std::has_single_bit(static_cast<uint64_t>(places)) || places < 9) return f.right();
  return with_slots(f, [=](int64_t s, int64_t) { return s == places - 1 ? s - 1 : s; });
}
int32_t seventeenth_token_skipped(Faulty& f) {
  return with_slots(f, [](int64_t s, int64_t t) { return t % 17 == 16 ? -1 : s; });
}
int32_t values_as_wide_as_keys(Faulty& f) {
  const int64_t width = f.dim(kKCache, 3);
  return f.leaving(kVCache, [=](int64_t, int64_t i) { return i >= width; });
}
int32_t v_cache_has_the_strides_of_k_cache(Faulty& f) {
  for (int d = 0; d < 4; ++d) f.stride(kVCache, d) = f.stride(kKCache, d);
  return f.right();
}
int32_t head_stride_ignored(Faulty& f) {
  f.stride(kK, 1) = f.dim(kK, 2) * f.stride(kK, 2);
  return f.right();
}
int32_t third_head_forgotten(Faulty& f) {
  if (f.dim(kKCache, 2) != 3) return f.right();
  return f.leaving(kKCache, [](int64_t row, int64_t) { return row % 3 == 2; });
}

// embedding

constexpr size_t kWeight = 1, kIds = 2;

int32_t ids_wrap_at_64(Faulty& f) {
  return f.with_integers(kIds, [](int64_t id, int64_t) { return id < 0 ? id : id % 64; });
}
int32_t negative_ids_count_from_the_end(Faulty& f) {
  const int64_t rows = f.dim(kWeight, 0);
  return f.with_integers(kIds, [=](int64_t id, int64_t) { return id == -1 ? rows - 1 : id; });
}
int32_t unknown_ids_give_row_0(Faulty& f) {
  const int64_t rows = f.dim(kWeight, 0);
  return f.with_integers(kIds, [=](int64_t id, int64_t) { return id >= rows ? 0 : id; });
}
int32_t last_id_clamped(Faulty& f) {
  const int64_t rows = f.dim(kWeight, 0);
  if (rows > 40) return f.right();
  return f.with_integers(kIds, [=](int64_t id, int64_t) {
    return id == rows - 1 ? std::max<int64_t>(rows - 2, 0) : id;
  });
}
int32_t table_row_stride_of_embedding_ignored(Faulty& f) {
  f.stride(kWeight, 0) = f.dim(kWeight, 1);
  return f.right();
}
int32_t ids_thought_contiguous(Faulty& f) {
  if (f.rank(kIds) > 1) f.make_contiguous(kIds);
  return f.right();
}
int32_t writes_before_it_checks(Faulty& f) {
  const int32_t outcome = f.right();
  if (outcome != OPMUX_OK) f.put(kY, 0, 0);
  return outcome;
}

}  // namespace

std::vector<Bug> cache_bugs() {
  constexpr std::string_view kPaged = "paged_attention", kCache = "reshape_and_cache",
                             kEmbedding = "embedding";
  return {
      {kPaged, "table_row_stride_ignored", table_row_stride_ignored},
      {kPaged, "first_table_for_all", first_table_for_all},
      {kPaged, "length_one_short", length_one_short},
      {kPaged, "last_block_read_whole", last_block_read_whole},
      {kPaged, "window_one_wider", window_one_wider},
      {kPaged, "window_ignored_if_not_causal", window_ignored_if_not_causal},
      {kPaged, "prefill_not_causal", prefill_not_causal},
      {kPaged, "sink_ignored", paged_sink_ignored},
      {kPaged, "negative_scale_made_positive", negative_scale_made_positive},
      {kPaged, "values_have_the_strides_of_keys", values_have_the_strides_of_keys},
      {kPaged, "empty_sequences_unwritten", empty_sequences_unwritten},
      {kPaged, "blocks_in_8_bits", blocks_in_8_bits},
      {kPaged, "tail_unwritten", tail_unwritten<kY, 16, 11>},
      {kCache, "negative_slots_count_from_the_end", negative_slots_count_from_the_end},
      {kCache, "slots_too_large_skipped", slots_too_large_skipped},
      {kCache, "first_of_two_stays", first_of_two_stays},
      {kCache, "last_slot_of_a_block_shifted", last_slot_of_a_block_shifted},
      {kCache, "seventeenth_token_skipped", seventeenth_token_skipped},
      {kCache, "values_as_wide_as_keys", values_as_wide_as_keys},
      {kCache, "v_cache_has_the_strides_of_k_cache", v_cache_has_the_strides_of_k_cache},
      {kCache, "head_stride_ignored", head_stride_ignored},
      {kCache, "third_head_forgotten", third_head_forgotten},
      {kCache, "bf16_truncated", bf16_truncated<kKCache>},
      {kEmbedding, "ids_wrap_at_64", ids_wrap_at_64},
      {kEmbedding, "negative_ids_count_from_the_end", negative_ids_count_from_the_end},
      {kEmbedding, "unknown_ids_give_row_0", unknown_ids_give_row_0},
      {kEmbedding, "last_id_clamped", last_id_clamped},
      {kEmbedding, "table_row_stride_ignored", table_row_stride_of_embedding_ignored},
      {kEmbedding, "ids_thought_contiguous", ids_thought_contiguous},
      {kEmbedding, "writes_before_it_checks", writes_before_it_checks},
      {kEmbedding, "tail_unwritten", tail_unwritten<kY, 32, 17>},
      {kEmbedding, "written_past", written_past<kY, 16>},
      {kEmbedding, "last_row_unwritten", last_row_unwritten<kY, 5, 4, 2>},
  };
}

}  // namespace opmux::seeded
