// The row operations of attention between its two matrix products. The compiler vectorizes these
// loops with AVX-512, which the implementation requires as a capability.
#pragma once

#include <cstdint>

#include "backends/common/attention_options.hpp"
#include "backends/common/element.hpp"

namespace opmux::backends::onednn {

inline constexpr const char* kRowFeatures = "avx512f,avx512bw,avx512dq,avx512vl,avx512_bf16";

// Rows are processed in steps of this many elements.
inline constexpr int64_t kRowStep = 16;

// Running softmax state of one query after some blocks of keys.
struct RunningRow {
  float largest = kExcluded;  // Largest logit.
  float sum = 0;              // Sum of exp(logit - largest).
  float factor = 1;           // Rescales the sums of earlier blocks.
};

// Converts products to logits: scales them and, if softcap > 0, caps them. `count` must be a
// multiple of kRowStep.
void cap_row(float* products, int64_t count, float scale, float softcap);

// Adds the mask's terms; see AttentionOptions::logit.
void add_mask(float* logits, int64_t count, const float* added);

// Converts scale * logits to weights relative to the largest logit so far, rounded to the values'
// type. `count` must be a multiple of kRowStep.
template <class T>
void weigh_row(const float* logits, int64_t count, float scale, RunningRow& row, T* weights);

// sums = sums * factor + part
void add_part(float* sums, int64_t count, float factor, const float* part);

// to = sums * factor, rounded to T.
template <class T>
void store_scaled(const float* sums, int64_t count, float factor, T* to);

}  // namespace opmux::backends::onednn
