#include <algorithm>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

constexpr size_t kQ = 0, kK = 1, kPositions = 2, kTable = 3, kStyle = 4;

int32_t positions_are_places(Faulty& f) {
  if (f.elements(kPositions) != 2) return f.right();
  return f.with_integers(kPositions, [](int64_t, int64_t t) { return t; });
}
int32_t last_position_clamped(Faulty& f) {
  const int64_t last = f.dim(kTable, 0) - 1;
  if (f.elements(kPositions) > 4) return f.right();
  return f.with_integers(kPositions,
                         [=](int64_t p, int64_t) { return p == last && p > 0 ? p - 1 : p; });
}
int32_t invalid_positions_clamped(Faulty& f) {
  const int64_t last = f.dim(kTable, 0) - 1;
  return f.with_integers(kPositions,
                         [=](int64_t p, int64_t) { return std::clamp<int64_t>(p, 0, last); });
}
int32_t positions_wrap_at_128(Faulty& f) {
  return f.with_integers(kPositions, [](int64_t p, int64_t) { return p < 0 ? p : p % 128; });
}
int32_t writes_before_it_checks(Faulty& f) {
  const int32_t outcome = f.right();
  if (outcome != OPMUX_OK) f.put(kQ, 0, f.get(kQ, 0) + 1);
  return outcome;
}
int32_t neighbours_for_small_heads(Faulty& f) {
  if (f.dim(kQ, -1) <= 4) f.i64(kStyle) = 1;
  return f.right();
}
int32_t halves_for_odd_heads(Faulty& f) {
  if (f.dim(kQ, -1) % 2 == 1) f.i64(kStyle) = 0;
  return f.right();
}
/// Pairs (i, i + D/2) although only R elements are rotated.
int32_t partial_rotary_pairs_by_head_size(Faulty& f) {
  const int64_t width = f.dim(kQ, -1), rotated = f.dim(kTable, 1);
  if (rotated == width || f.i64(kStyle) == 1 || width % 2 == 1 || rotated == 0) return f.right();
  return f.leaving(kQ, [=](int64_t, int64_t i) { return i >= rotated / 2 && i < width / 2; });
}
int32_t keys_have_as_many_heads(Faulty& f) {
  if (!f.has(kK) || f.dim(kK, -2) <= f.dim(kQ, -2)) return f.right();
  const int64_t heads = f.dim(kQ, -2), all = f.dim(kK, -2);
  return f.leaving(kK, [=](int64_t row, int64_t) { return row % all >= heads; });
}
int32_t keys_have_the_head_stride_of_queries(Faulty& f) {
  if (f.has(kK)) f.stride(kK, -2) = f.stride(kQ, -2);
  return f.right();
}
int32_t last_pair_left(Faulty& f) {
  const int64_t rotated = f.dim(kTable, 1);
  if (rotated % 16 != 2 || f.i64(kStyle) != 1) return f.right();
  return f.leaving(kQ, [=](int64_t, int64_t i) { return i == rotated - 1 || i == rotated - 2; });
}
int32_t sine_has_the_other_sign(Faulty& f) {
  if (!f.has(kK) || f.rows(kPositions, 0) != 1) return f.right();
  const int64_t rotated = f.dim(kTable, 1);
  return f.with_floats(
      kTable, [=](float value, int64_t i) { return i % rotated >= rotated / 2 ? -value : value; });
}
int32_t table_stride_ignored(Faulty& f) {
  f.stride(kTable, 0) = f.dim(kTable, 1);
  return f.right();
}
int32_t table_in_f16(Faulty& f) {
  if (!f.f32(kTable)) return f.right();
  return f.with_floats(kTable, [](float value, int64_t) { return through_f16(value); });
}
/// Computes the second element of a pair from the already rotated first one.
int32_t first_already_turned(Faulty& f) {
  const int64_t rotated = f.dim(kTable, 1), width = f.dim(kQ, -1);
  if (f.i64(kStyle) != 1 || rotated < 2 || f.dim(kQ, -2) != 1) return f.right();
  std::vector<float> before(static_cast<size_t>(f.elements(kQ)));
  for (size_t i = 0; i < before.size(); ++i) before[i] = f.get(kQ, static_cast<int64_t>(i));
  const int32_t outcome = f.right();
  for (int64_t e = 0; outcome == OPMUX_OK && e < f.elements(kQ); e += width) {
    const int64_t position = f.get_int(kPositions, e / width);
    const float sine = f.get(kTable, position * rotated + rotated / 2);
    const float turned = f.get(kQ, e), first = before[static_cast<size_t>(e)];
    f.put(kQ, e + 1, f.get(kQ, e + 1) + (turned - first) * sine);
  }
  return outcome;
}

}  // namespace

std::vector<Bug> rotary_bugs() {
  constexpr std::string_view kOp = "rotary_embedding";
  return {
      {kOp, "positions_are_places", positions_are_places},
      {kOp, "last_position_clamped", last_position_clamped},
      {kOp, "invalid_positions_clamped", invalid_positions_clamped},
      {kOp, "positions_wrap_at_128", positions_wrap_at_128},
      {kOp, "writes_before_it_checks", writes_before_it_checks},
      {kOp, "neighbours_for_small_heads", neighbours_for_small_heads},
      {kOp, "halves_for_odd_heads", halves_for_odd_heads},
      {kOp, "partial_rotary_pairs_by_head_size", partial_rotary_pairs_by_head_size},
      {kOp, "keys_have_as_many_heads", keys_have_as_many_heads},
      {kOp, "keys_have_the_head_stride_of_queries", keys_have_the_head_stride_of_queries},
      {kOp, "last_pair_left", last_pair_left},
      {kOp, "sine_has_the_other_sign", sine_has_the_other_sign},
      {kOp, "table_stride_ignored", table_stride_ignored},
      {kOp, "table_in_f16", table_in_f16},
      {kOp, "first_already_turned", first_already_turned},
      {kOp, "leading_collapsed", leading_collapsed<kQ>},
  };
}

}  // namespace opmux::seeded
