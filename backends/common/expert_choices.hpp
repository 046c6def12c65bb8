// The experts that a router selected for each token.
#pragma once

#include <opmux/abi.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "backends/common/integers.hpp"
#include "backends/common/rows.hpp"

namespace opmux::backends {

// Reads the selected experts of all tokens from the `ids` tensor.
class ExpertChoices {
 public:
  explicit ExpertChoices(const opmux_tensor& ids) : ids_(ids), rows_(ids) {}

  int64_t tokens() const { return rows_.count(); }
  int64_t per_token() const { return ids_.shape[ids_.ndim - 1]; }
  int64_t count() const { return tokens() * per_token(); }

  // Expert i of a token; -1 if the slot is empty.
  int64_t expert(int64_t token, int64_t i) const {
    return std::max<int64_t>(integer_at(ids_, rows_.offset(token) + i * inner_stride(ids_)), -1);
  }

  // Error text for the first expert index that is not below `experts`; empty if all are valid.
  std::string complaint(int64_t experts) const {
    for (int64_t t = 0; t < tokens(); ++t) {
      for (int64_t i = 0; i < per_token(); ++i) {
        if (expert(t, i) < experts) continue;
        return "expert " + std::to_string(expert(t, i)) + " of token " + std::to_string(t) +
               " is not below " + std::to_string(experts);
      }
    }
    return {};
  }

 private:
  const opmux_tensor& ids_;
  Rows rows_;
};

}  // namespace opmux::backends
