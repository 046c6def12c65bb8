// What attention does between its two products, row by row: loops that the compiler turns into
// vectors of AVX-512, which the implementation asks for as a capability.
#pragma once

#include <cstdint>

#include "backends/common/attention_options.hpp"
#include "backends/common/element.hpp"

namespace opmux::backends::onednn {

inline constexpr const char* kRowFeatures = "avx512f,avx512bw,avx512dq,avx512vl,avx512_bf16";

// Rows are worked on so many elements at a time.
inline constexpr int64_t kRowStep = 16;

// What is known of one query's softmax after some blocks of keys.
struct RunningRow {
  float largest = kExcluded;  // logit
  float sum = 0;              // of exp(logit - largest)
  float factor = 1;           // of what was summed before the last block
};

// Products become logits: scaled, capped if softcap is above 0. `count` is a multiple of kRowStep.
void cap_row(float* products, int64_t count, float scale, float softcap);

// What the mask adds. See AttentionOptions::logit.
void add_mask(float* logits, int64_t count, const float* added);

// scale * logits become weights relative to the largest so far, rounded to the type of the values.
// `count` is a multiple of kRowStep.
template <class T>
void weigh_row(const float* logits, int64_t count, float scale, RunningRow& row, T* weights);

// sums = sums * factor + part
void add_part(float* sums, int64_t count, float factor, const float* part);

// to = sums * factor, rounded once.
template <class T>
void store_scaled(const float* sums, int64_t count, float factor, T* to);

}  // namespace opmux::backends::onednn
