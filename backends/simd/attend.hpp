// Scalar parts that attention and paged_attention share.
#pragma once

#include <opmux/plugin.hpp>

#include <cstddef>
#include <cstdint>

#include "backends/common/attention_options.hpp"
#include "backends/common/rows.hpp"
#include "backends/common/visible_keys.hpp"

namespace opmux::backends::simd {

// Limits of the query rows kept on the stack: their number and the size of a head.
inline constexpr int64_t kMostRows = 8;
inline constexpr int64_t kMostHeadSize = 640;
inline constexpr int64_t kKeyBlock = 64;  // Keys whose logits are kept.

struct HeadSizes {
  size_t key, value;
};

// One query of one head, and its running result over the keys so far.
template <class T>
struct AttendRow {
  float q[kMostHeadSize];
  float values[kMostHeadSize];  // Sum of exp(logit - largest) * value.
  float logits[kKeyBlock];      // Logits of the current block, then its weights.
  float sum;                    // Sum of exp(logit - largest).
  float largest;
  float factor;  // Rescales the sums of earlier blocks.
  float sink;
  KeyRange range;
  T* y;
};

// Addresses of the keys and values of one block.
template <class T>
struct KeyBlock {
  const T *keys[kKeyBlock], *values[kKeyBlock];
};

// Reads the arguments from `first` on: causal, scale, window, sink, softcap. Returns an error if
// softcap is negative or not finite.
inline int32_t read_options(const plugin::Call& call, uint32_t first, bool causal_by_default,
                            AttentionOptions& options) {
  options.causal = call.boolean(first, causal_by_default);
  options.scale =
      static_cast<float>(call.f64(first + 1, default_attention_scale(call.tensor(1).dim(-1))));
  options.window = call.i64(first + 2);
  options.softcap = static_cast<float>(call.f64(first + 4));
  if (is_softcap(options.softcap)) return OPMUX_OK;
  return plugin::invalid(call.error(), "attention.softcap", softcap_refusal(options.softcap));
}

// Cost of `rows` rows that share `keys` keys, in the unit of for_each_row (elements): keys and
// values are loaded once and multiplied once per row.
inline int64_t cost_of_rows(int64_t rows, int64_t keys, int64_t key_size, int64_t value_size) {
  return keys * (key_size + value_size) * (2 + rows) / 8;
}

// The sink of a head; -inf, which adds nothing, if the argument is absent.
inline float sink_of(const plugin::TensorArg& sink, int64_t head) {
  return sink ? element_at(sink.c(), head * sink.stride(0)) : kExcluded;
}

}  // namespace opmux::backends::simd
