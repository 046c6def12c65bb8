#include <algorithm>
#include <cmath>

#include "seeded_bugs/faulty.hpp"

namespace opmux::seeded {
namespace {

// topk_softmax

constexpr size_t kWeights = 0, kIds = 1, kLogits = 2, kRenormalize = 3;

/// Orders equal neighbours by descending index.
int32_t ties_go_to_the_higher_id(Faulty& f) {
  const int32_t outcome = f.right();
  const int64_t chosen = f.dim(kIds, -1), experts = f.dim(kLogits, -1);
  for (int64_t e = 0; outcome == OPMUX_OK && e + 1 < f.elements(kIds); ++e) {
    if (e % chosen == chosen - 1) continue;
    const int64_t row = e / chosen * experts, a = f.get_int(kIds, e), b = f.get_int(kIds, e + 1);
    if (f.get(kLogits, row + a) != f.get(kLogits, row + b) || a > b) continue;
    f.put_int(kIds, e, b);
    f.put_int(kIds, e + 1, a);
    ++e;
  }
  return outcome;
}
int32_t renormalized_if_more_than_eight(Faulty& f) {
  if (f.dim(kIds, -1) > 8) f.i64(kRenormalize) = 1;
  return f.right();
}
int32_t last_expert_never_chosen(Faulty& f) {
  if (f.dim(kLogits, -1) % 8 != 1 || f.dim(kLogits, -1) == f.dim(kIds, -1)) return f.right();
  --f.shape(kLogits, -1);
  return f.right();
}
int32_t ids_of_the_first_row(Faulty& f) {
  const int32_t outcome = f.right();
  if (outcome != OPMUX_OK || f.rows(kIds) != 2) return outcome;
  for (int64_t i = 0; i < f.dim(kIds, -1); ++i) {
    f.put_int(kIds, f.dim(kIds, -1) + i, f.get_int(kIds, i));
  }
  return outcome;
}

// fused_moe

constexpr size_t kY = 0, kX = 1, kFirst = 2, kSecond = 3, kFactors = 4, kExperts = 5,
                 kActivation = 6;

int32_t negative_expert_is_the_first(Faulty& f) {
  return f.with_integers(kExperts, [](int64_t id, int64_t) { return std::max<int64_t>(id, 0); });
}
int32_t last_expert_is_the_one_before(Faulty& f) {
  const int64_t experts = f.dim(kFirst, 0);
  if (experts < 5) return f.right();
  return f.with_integers(kExperts,
                         [=](int64_t id, int64_t) { return id == experts - 1 ? id - 1 : id; });
}
int32_t gelu_is_tanh(Faulty& f) {
  if (f.i64(kActivation) == 1) f.i64(kActivation) = 2;
  return f.right();
}
int32_t weights_thought_to_sum_to_one(Faulty& f) {
  const int64_t choices = f.dim(kFactors, -1);
  if (choices != 3) return f.right();
  std::vector<float> sums(static_cast<size_t>(f.rows(kFactors)), 0);
  for (int64_t e = 0; e < f.elements(kFactors); ++e) {
    sums[static_cast<size_t>(e / choices)] += f.get(kFactors, e);
  }
  return f.with_floats(kFactors, [&](float weight, int64_t e) {
    return weight / sums[static_cast<size_t>(e / choices)];
  });
}
int32_t halves_of_the_first_product_swapped(Faulty& f) {
  const int64_t inner = f.dim(kSecond, 2);
  if (inner != 1) return f.right();
  f.shift(kFirst, f.stride(kFirst, 1));
  f.stride(kFirst, 1) *= -1;
  return f.right();
}
int32_t second_weight_stride_ignored(Faulty& f) {
  f.stride(kSecond, 1) = f.dim(kSecond, 2) * f.stride(kSecond, 2);
  return f.right();
}

// linear_w8a8

constexpr size_t kWeight = 2, kScale = 3, kXScale = 4, kBias = 5;

int32_t scale_of_the_first_row(Faulty& f) {
  if (f.has(kXScale)) {
    for (int d = 0; d < f.rank(kXScale); ++d) f.stride(kXScale, d) = 0;
  }
  return f.right();
}
int32_t given_scale_ignored_for_floats(Faulty& f) {
  if (f.f32(kX)) f.drop(kXScale);
  return f.right();
}
int32_t bias_in_bf16(Faulty& f) {
  if (!f.f32(kBias)) return f.right();
  return f.with_floats(kBias, [](float value, int64_t) { return through_bf16(value); });
}
int32_t quantized_depth_tail_dropped(Faulty& f) {
  if (f.dim(kX, -1) % 4 != 3 || !f.has(kXScale)) return f.right();
  --f.shape(kX, -1);
  --f.shape(kWeight, 1);
  return f.right();
}

// linear_w4a16

constexpr size_t kZero = 4;

int32_t zero_point_of_the_first_group(Faulty& f) {
  if (f.has(kZero)) f.stride(kZero, 1) = 0;
  return f.right();
}
int32_t zero_point_always_eight(Faulty& f) {
  if (f.has(kZero) && f.f16(kZero)) f.drop(kZero);
  return f.right();
}
int32_t scale_of_the_last_group_for_two(Faulty& f) {
  if (f.dim(kScale, 1) != 2) return f.right();
  f.shift(kScale, f.stride(kScale, 1));
  f.stride(kScale, 1) = 0;
  return f.right();
}
int32_t packed_row_stride_ignored(Faulty& f) {
  f.stride(kWeight, 0) = f.dim(kWeight, 1);
  return f.right();
}

// sample

constexpr size_t kTokens = 0, kVocabulary = 1, kTemperature = 2, kTopK = 3, kTopP = 4, kSeed = 5,
                 kOffset = 6;

int32_t offset_ignored_for_many_rows(Faulty& f) {
  if (f.elements(kTokens) > 8) f.drop(kOffset);
  return f.right();
}
int32_t seed_in_32_bits(Faulty& f) {
  if (!f.has(kSeed)) return f.right();
  return f.with_integers(kSeed, [](int64_t seed, int64_t) { return seed & 0xffffffff; });
}
int32_t top_k_one_more(Faulty& f) {
  if (!f.has(kTopK)) return f.right();
  return f.with_integers(kTopK, [](int64_t k, int64_t) { return k == 2 ? 3 : k; });
}
int32_t top_p_before_top_k(Faulty& f) {
  if (f.has(kTopK) && f.has(kTopP) && f.dim(kVocabulary, -1) > 40) f.drop(kTopK);
  return f.right();
}
int32_t cold_is_greedy(Faulty& f) {
  if (!f.has(kTemperature)) return f.right();
  return f.with_floats(kTemperature, [](float t, int64_t) { return t > 0 && t < 0.5F ? 0 : t; });
}
int32_t greedy_takes_the_last_of_equals(Faulty& f) {
  const int32_t outcome = f.right();
  const int64_t width = f.dim(kVocabulary, -1);
  for (int64_t r = 0; outcome == OPMUX_OK && f.has(kTemperature) && r < f.elements(kTokens); ++r) {
    int64_t token = f.get_int(kTokens, r);
    if (f.get(kTemperature, r) != 0 || token < 0) continue;
    for (int64_t t = width - 1; t > token; --t) {
      if (f.get(kVocabulary, r * width + t) == f.get(kVocabulary, r * width + token)) token = t;
    }
    f.put_int(kTokens, r, token);
  }
  return outcome;
}

}  // namespace

std::vector<Bug> routing_bugs() {
  constexpr std::string_view kTop = "topk_softmax", kMoe = "fused_moe", kW8 = "linear_w8a8",
                             kW4 = "linear_w4a16", kSample = "sample";
  return {
      {kTop, "ties_go_to_the_higher_id", ties_go_to_the_higher_id},
      {kTop, "renormalized_if_more_than_eight", renormalized_if_more_than_eight},
      {kTop, "last_expert_never_chosen", last_expert_never_chosen},
      {kTop, "ids_of_the_first_row", ids_of_the_first_row},
      {kTop, "inner_stride_ignored", inner_stride_ignored<kLogits>},
      {kTop, "bf16_truncated", bf16_truncated<kWeights>},
      {kMoe, "negative_expert_is_the_first", negative_expert_is_the_first},
      {kMoe, "last_expert_is_the_one_before", last_expert_is_the_one_before},
      {kMoe, "gelu_is_tanh", gelu_is_tanh},
      {kMoe, "weights_thought_to_sum_to_one", weights_thought_to_sum_to_one},
      {kMoe, "halves_of_the_first_product_swapped", halves_of_the_first_product_swapped},
      {kMoe, "second_weight_stride_ignored", second_weight_stride_ignored},
      {kMoe, "leading_collapsed", leading_collapsed<kX>},
      {kMoe, "tail_unwritten", tail_unwritten<kY, 8, 5>},
      {kW8, "scale_of_the_first_row", scale_of_the_first_row},
      {kW8, "given_scale_ignored_for_floats", given_scale_ignored_for_floats},
      {kW8, "bias_in_bf16", bias_in_bf16},
      {kW8, "depth_tail_dropped", quantized_depth_tail_dropped},
      {kW8, "row_stride_ignored", row_stride_ignored<kWeight>},
      {kW4, "zero_point_of_the_first_group", zero_point_of_the_first_group},
      {kW4, "zero_point_always_eight", zero_point_always_eight},
      {kW4, "scale_of_the_last_group_for_two", scale_of_the_last_group_for_two},
      {kW4, "packed_row_stride_ignored", packed_row_stride_ignored},
      {kW4, "last_row_unwritten", last_row_unwritten<kY, 3, 8, 3>},
      {kSample, "offset_ignored_for_many_rows", offset_ignored_for_many_rows},
      {kSample, "seed_in_32_bits", seed_in_32_bits},
      {kSample, "top_k_one_more", top_k_one_more},
      {kSample, "top_p_before_top_k", top_p_before_top_k},
      {kSample, "cold_is_greedy", cold_is_greedy},
      {kSample, "greedy_takes_the_last_of_equals", greedy_takes_the_last_of_equals},
      {kSample, "logits_row_stride_ignored", row_stride_ignored<kVocabulary>},
  };
}

}  // namespace opmux::seeded
