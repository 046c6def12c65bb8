#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

constexpr size_t kY = 0, kQ = 1, kK = 2, kV = 3, kMask = 4, kCausal = 5, kScale = 6, kWindow = 7,
                 kSink = 8, kSoftcap = 9;

/// Replaces the visibility rule where there is no mask: sees(position of the query, key).
template <class Sees>
int32_t seeing(Faulty& f, Sees sees) {
  if (f.has(kMask)) return f.right();
  const int64_t queries = f.dim(kQ, 1), keys = f.dim(kK, 1);
  std::vector<uint8_t> mask(static_cast<size_t>(queries * keys));
  for (int64_t s = 0; s < queries; ++s) {
    for (int64_t t = 0; t < keys; ++t) {
      mask[static_cast<size_t>(s * keys + t)] = sees(s + keys - queries, t) ? 1 : 0;
    }
  }
  f.i64(kCausal) = 0;
  f.i64(kWindow) = 0;
  return f.with_mask(kMask, mask, queries, keys);
}

int32_t causal_from_the_first(Faulty& f) {
  const int64_t shift = f.dim(kK, 1) - f.dim(kQ, 1), window = f.i64(kWindow);
  if (f.i64(kCausal) == 0 || shift == 0) return f.right();
  return seeing(f, [=](int64_t p, int64_t t) {
    return t <= p - shift && (window == 0 || std::abs(p - t) < window);
  });
}
int32_t causal_without_oneself(Faulty& f) {
  if (f.i64(kCausal) == 0 || f.i64(kWindow) != 0 || f.dim(kQ, 1) < 4) return f.right();
  return seeing(f, [](int64_t p, int64_t t) { return t < p; });
}
int32_t window_one_wider(Faulty& f) {
  if (f.i64(kWindow) != 0) ++f.i64(kWindow);
  return f.right();
}
int32_t window_one_narrower(Faulty& f) {
  if (f.i64(kWindow) > 2) --f.i64(kWindow);
  return f.right();
}
int32_t window_to_the_left_only(Faulty& f) {
  const int64_t window = f.i64(kWindow);
  if (window == 0 || f.i64(kCausal) != 0) return f.right();
  return seeing(f, [=](int64_t p, int64_t t) { return p - t < window; });
}
int32_t window_ignored_while_decoding(Faulty& f) {
  if (f.dim(kQ, 1) == 1) f.i64(kWindow) = 0;
  return f.right();
}

/// Replaces the head of k and v for each head of q, where there is no mask.
template <class HeadOf>
int32_t by_heads(Faulty& f, HeadOf head_of) {
  const int64_t heads = f.dim(kQ, 2), shared = f.dim(kK, 2);
  if (f.has(kMask) || heads == shared) return f.right();
  int32_t outcome = OPMUX_OK;
  for (const size_t i : {kY, kQ, kK, kV}) f.shape(i, 2) = 1;
  if (f.has(kSink)) f.shape(kSink, 0) = 1;
  for (int64_t h = 0; h < heads && outcome == OPMUX_OK; ++h) {
    const auto move = [&](int64_t way) {
      const int64_t group = head_of(h, heads, shared);
      for (const size_t i : {kY, kQ}) f.shift(i, way * h * f.stride(i, 2));
      for (const size_t i : {kK, kV}) f.shift(i, way * group * f.stride(i, 2));
      if (f.has(kSink)) f.shift(kSink, way * h * f.stride(kSink, 0));
    };
    move(1);
    outcome = f.right();
    move(-1);
  }
  return outcome;
}
int32_t groups_interleaved(Faulty& f) {
  return by_heads(f, [](int64_t h, int64_t, int64_t shared) { return h % shared; });
}
int32_t last_group_takes_the_first(Faulty& f) {
  return by_heads(f, [](int64_t h, int64_t heads, int64_t shared) {
    return h == heads - 1 ? 0 : h / (heads / shared);
  });
}

int32_t scale_by_the_size_of_values(Faulty& f) {
  if (!f.has(kScale)) f.set(kScale, 1 / std::sqrt(static_cast<double>(f.dim(kV, 3))));
  return f.right();
}
int32_t scale_of_zero_is_none(Faulty& f) {
  if (f.has(kScale) && f.f64(kScale) == 0) f.drop(kScale);
  return f.right();
}
int32_t softcap_ignored_if_causal(Faulty& f) {
  if (f.i64(kCausal) != 0) f.set(kSoftcap, 0);
  return f.right();
}
int32_t softcap_at_most_20(Faulty& f) {
  f.set(kSoftcap, f.f64(kSoftcap) > 0 ? std::min(f.f64(kSoftcap), 20.0) : f.f64(kSoftcap));
  return f.right();
}
int32_t sink_ignored_with_a_mask(Faulty& f) {
  if (f.has(kMask)) f.drop(kSink);
  return f.right();
}
int32_t sink_of_the_first_head(Faulty& f) {
  if (f.has(kSink)) f.stride(kSink, 0) = 0;
  return f.right();
}
int32_t blind_rows_give_nan(Faulty& f) {
  const int32_t outcome = f.right();
  for (int64_t r = 0; outcome == OPMUX_OK && r < f.rows(kY); ++r) {
    const std::vector<float> row = f.row(kY, r);
    if (std::ranges::all_of(row, [](float v) { return v == 0; })) {
      f.put_row(kY, r, std::vector<float>(row.size(), NAN));
    }
  }
  return outcome;
}
int32_t mask_of_the_first_query(Faulty& f) {
  if (f.has(kMask) && f.rank(kMask) == 3) f.stride(kMask, 1) = 0;
  return f.right();
}
int32_t mask_of_the_first_batch(Faulty& f) {
  if (f.has(kMask) && f.rank(kMask) == 4) f.stride(kMask, 0) = 0;
  return f.right();
}
int32_t mask_row_stride_ignored(Faulty& f) {
  if (f.has(kMask) && f.rank(kMask) >= 2 && f.dim(kMask, -1) > 1) {
    f.stride(kMask, -2) = f.dim(kMask, -1);
  }
  return f.right();
}
int32_t last_key_lost(Faulty& f) {
  if (f.dim(kK, 1) % 8 != 1 || f.i64(kCausal) != 0 || f.i64(kWindow) != 0) return f.right();
  const int64_t last = f.dim(kK, 1) - 1;
  return seeing(f, [=](int64_t, int64_t t) { return t != last; });
}
int32_t first_batch_of_values(Faulty& f) {
  if (f.dim(kV, 0) == 3) f.stride(kV, 0) = 0;
  return f.right();
}
int32_t heads_thought_outside(Faulty& f) {
  if (f.stride(kK, 1) < f.stride(kK, 2)) f.make_contiguous(kK);
  return f.right();
}
int32_t depth_tail_dropped(Faulty& f) {
  const int64_t depth = f.dim(kQ, 3);
  if (depth % 16 != 15) return f.right();
  if (!f.has(kScale)) f.set(kScale, 1 / std::sqrt(static_cast<double>(depth)));
  --f.shape(kQ, 3);
  --f.shape(kK, 3);
  return f.right();
}

}  // namespace

std::vector<Bug> attention_bugs() {
  constexpr std::string_view kOp = "attention";
  return {
      {kOp, "causal_from_the_first", causal_from_the_first},
      {kOp, "causal_without_oneself", causal_without_oneself},
      {kOp, "window_one_wider", window_one_wider},
      {kOp, "window_one_narrower", window_one_narrower},
      {kOp, "window_to_the_left_only", window_to_the_left_only},
      {kOp, "window_ignored_while_decoding", window_ignored_while_decoding},
      {kOp, "groups_interleaved", groups_interleaved},
      {kOp, "last_group_takes_the_first", last_group_takes_the_first},
      {kOp, "scale_by_the_size_of_values", scale_by_the_size_of_values},
      {kOp, "scale_of_zero_is_none", scale_of_zero_is_none},
      {kOp, "softcap_ignored_if_causal", softcap_ignored_if_causal},
      {kOp, "softcap_at_most_20", softcap_at_most_20},
      {kOp, "sink_ignored_with_a_mask", sink_ignored_with_a_mask},
      {kOp, "sink_of_the_first_head", sink_of_the_first_head},
      {kOp, "blind_rows_give_nan", blind_rows_give_nan},
      {kOp, "mask_of_the_first_query", mask_of_the_first_query},
      {kOp, "mask_of_the_first_batch", mask_of_the_first_batch},
      {kOp, "mask_row_stride_ignored", mask_row_stride_ignored},
      {kOp, "last_key_lost", last_key_lost},
      {kOp, "first_batch_of_values", first_batch_of_values},
      {kOp, "heads_thought_outside", heads_thought_outside},
      {kOp, "depth_tail_dropped", depth_tail_dropped},
      {kOp, "tail_unwritten", tail_unwritten<kY, 8, 3>},
      {kOp, "f32_through_f16", f32_through_f16<kY, kV>},
  };
}

}  // namespace opmux::seeded
