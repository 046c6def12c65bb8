// Attention of one query to the keys and values of one head; shared by attention and
// paged_attention.
#pragma once

#include <opmux/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/common/attention_options.hpp"
#include "backends/common/panel.hpp"
#include "backends/common/visible_keys.hpp"

namespace opmux::backends::reference {

struct AttendOptions : AttentionOptions {
  // One per head of q; -inf, which adds nothing, if the argument is absent.
  std::vector<float> sink;
};

// Reads the options from argument `first` on. Returns an error if softcap is negative or not
// finite.
int32_t read_options(const plugin::Call& call, uint32_t first, bool causal_by_default,
                     AttendOptions& options);

class Attend {
 public:
  // Allocates all memory needed for up to `most_keys` keys.
  Attend(const AttendOptions& options, int64_t most_keys, int64_t key_size, int64_t value_size);

  // Loads the keys and values of one head: key(j, d) is element d of key j, value(j, d) element d
  // of its value.
  template <class Key, class Value>
  void load(int64_t keys, const Key& key, const Value& value) {
    keys_ = keys;
    for (int64_t j = 0; j < keys; j += kPanelWidth) {
      key_panels_[size_t(j / kPanelWidth)].fill(
          key_size_, std::min(kPanelWidth, keys - j),
          [&](int64_t d, int64_t c) { return key(j + c, d); });
    }
    for (int64_t d = 0; d < value_size_; d += kPanelWidth) {
      value_panels_[size_t(d / kPanelWidth)].fill(
          keys, std::min(kPanelWidth, value_size_ - d),
          [&](int64_t j, int64_t c) { return value(j, d + c); });
    }
  }

  // Computes the result of query number `query` of `queries` for `head`; added(j) is the mask's
  // term for key j.
  template <class Added>
  void query(const float* q, int64_t query, int64_t queries, int64_t head, const Added& added,
             float* y) {
    const KeyRange range = visible_keys(query, queries, keys_, options_.causal, options_.window);
    multiply_keys(q, range);
    for (int64_t j = range.first; j < range.last; ++j) {
      logits_[size_t(j)] = options_.logit(logits_[size_t(j)], added(j));
    }
    weigh_values(range, options_.sink[size_t(head)], y);
  }

 private:
  void multiply_keys(const float* q, const KeyRange& range);
  void weigh_values(const KeyRange& range, float sink, float* y);

  const AttendOptions& options_;
  int64_t key_size_, value_size_, keys_ = 0;
  std::vector<Panel> key_panels_, value_panels_;
  std::vector<float> logits_;
};

}  // namespace opmux::backends::reference
