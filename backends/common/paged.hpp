// The sequences of a paged_attention call and the range checks of its indices.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "backends/common/checked_indices.hpp"
#include "backends/common/integers.hpp"

namespace opmux::backends {

class PagedSequences {
 public:
  PagedSequences(const opmux_tensor& q, const opmux_tensor& k_cache,
                 const opmux_tensor& block_table, const opmux_tensor& seq_lens,
                 const opmux_tensor& query_start)
      : tokens_(q.shape[0]),
        blocks_(k_cache.shape[0]),
        places_(k_cache.shape[1]),
        block_table_(&block_table),
        seq_lens_(&seq_lens),
        query_start_(&query_start) {}

  int64_t count() const { return seq_lens_->shape[0]; }
  int64_t keys(int64_t b) const { return integer_at(*seq_lens_, b * seq_lens_->strides[0]); }
  // Index of the first query of sequence b. start(b + 1) is the end of sequence b.
  int64_t start(int64_t b) const { return integer_at(*query_start_, b * query_start_->strides[0]); }
  int64_t queries(int64_t b) const { return start(b + 1) - start(b); }
  // The sequence that contains query `token`.
  int64_t of(int64_t token) const {
    int64_t b = 0;
    for (int64_t last = count(); last - b > 1;) {
      const int64_t middle = b + (last - b) / 2;
      (start(middle) <= token ? b : last) = middle;
    }
    return b;
  }
  int64_t most_keys() const {
    int64_t most = 0;
    for (int64_t b = 0; b < count(); ++b) most = std::max(most, keys(b));
    return most;
  }
  int64_t block(int64_t b, int64_t i) const {
    return integer_at(*block_table_, b * block_table_->strides[0] + i * block_table_->strides[1]);
  }
  // Offset, in elements, of key j of sequence b in a cache.
  int64_t offset(const opmux_tensor& cache, int64_t b, int64_t j) const {
    return block(b, j / places_) * cache.strides[0] + j % places_ * cache.strides[1];
  }

  Wrong wrong() const {
    bool rises = start(0) == 0 && start(count()) == tokens_;
    for (int64_t b = 0; b < count(); ++b) rises = rises && start(b) <= start(b + 1);
    if (!rises) {
      return {"paged.query_start",
              "query_start must rise from 0 to T, which is " + std::to_string(tokens_)};
    }
    Wrong found;
    for (int64_t b = 0; !found && b < count(); ++b) found = wrong_sequence(b);
    return found;
  }

 private:
  Wrong wrong_sequence(int64_t b) const {
    const int64_t most = block_table_->shape[1] * places_;
    const std::string sequence = " of sequence " + std::to_string(b);
    if (keys(b) < 0 || keys(b) > most) {
      return {"paged.seq_len", "length " + std::to_string(keys(b)) + sequence + " is outside [0, " +
                                   std::to_string(most) + "]"};
    }
    for (int64_t i = 0; i * places_ < keys(b); ++i) {
      if (block(b, i) >= 0 && block(b, i) < blocks_) continue;
      return {"paged.block", "block " + std::to_string(block(b, i)) + sequence +
                                 " is outside [0, " + std::to_string(blocks_) + ")"};
    }
    return {};
  }

  int64_t tokens_, blocks_, places_;
  const opmux_tensor *block_table_, *seq_lens_, *query_start_;
};

}  // namespace opmux::backends
