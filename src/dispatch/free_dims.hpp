#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/shape_checks.hpp"
#include "dispatch/word_pair.hpp"

namespace opmux::dispatch {

/// Which dimensions may differ from call to call without anything to decide or check but that they
/// are the same in all tensors: mostly the leading ones, as the number of tokens. For at most four
/// tensors of rank four that are the first arguments of a call.
struct FreeDims {
  static constexpr size_t kTensors = 4, kWords = 4;

  bool usable = false;
  bool strides_count = false;  ///< strides must be as they were
  uint8_t size_bits = 0;       ///< free dimensions are below 2^size_bits
  uint8_t least = 1;           ///< and at least this
  /// All bits set where a dimension is free; the first tensor has every free one, in its place.
  alignas(16) uint64_t free[kTensors][kWords] = {};

  static FreeDims compile(const registry::Schema& schema, const ShapeChecks& checks,
                          const registry::Arguments& example,
                          const std::vector<registry::Fact>& guard_facts);

  /// Whether shapes that hold may be taken for those that others are compared with: none is large,
  /// and no free dimension is below `least`.
  bool can_start_from(const ArgValue* values, const ShapeChecks& checks) const;

  /// Of the first tensor: no free dimension is below `least` or large.
  WordPair out_of_bounds(WordPair shape, int word) const {
    const auto from_least = shape - static_cast<uint64_t>(least);
    return (from_least >> size_bits) & load_aligned(free[0] + word);
  }
};

}  // namespace opmux::dispatch
