#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "dispatch/plan/exact_words.hpp"
#include "dispatch/plan/shape_checks.hpp"

namespace opmux::dispatch {

/// The dimensions that may change from call to call without a new decision; the only check is that
/// they are equal in all tensors. Mostly leading dimensions such as the number of tokens. Supports
/// at most four tensors of rank up to four, which must be the first arguments of the call.
struct FreeDims {
  static constexpr size_t kTensors = 4, kWords = 4;

  bool usable = false;
  bool strides_count = false;  ///< strides must not change
  uint8_t size_bits = 0;       ///< free dimensions must be below 2^size_bits + least
  uint8_t least = 1;           ///< free dimensions must be at least this
  /// All bits are set where a dimension is free. Every free dimension occurs in the first tensor,
  /// at the same index.
  alignas(16) uint64_t free[kTensors][kWords] = {};

  static FreeDims compile(const schema::Schema& schema, const ShapeChecks& checks,
                          const schema::Arguments& example,
                          const std::vector<schema::Fact>& guard_facts);

  bool operator==(const FreeDims&) const = default;

  /// True if these valid shapes may serve as the base of comparisons: all dimensions are within the
  /// bounds.
  bool can_start_from(const ArgValue* values, const ShapeChecks& checks) const;

  /// Non-zero where a free dimension of the first tensor is out of bounds.
  WordPair out_of_bounds(WordPair shape, int word) const {
    const auto from_least = shape - static_cast<uint64_t>(least);
    return (from_least >> size_bits) & load_aligned(free[0] + word);
  }
};

/// How a plan checks shapes that differ from those of the last call. Plans of all threads share it.
struct ShapeGuard {
  FreeDims free;
  ShapeProgram program;  ///< the whole guard as a short program, if `usable`

  bool operator==(const ShapeGuard&) const = default;
};
/// A guard that accepts no other shapes.
inline constexpr ShapeGuard kNoOtherShapes{};

/// The shape guards of one operator: an insert-only list. Thread-safe; takes no lock.
class ShapeGuards {
 public:
  ShapeGuards() = default;
  ShapeGuards(const ShapeGuards&) = delete;
  ShapeGuards& operator=(const ShapeGuards&) = delete;
  ~ShapeGuards();
  /// Returns the guard of the list that equals this one and adds it if there is none.
  const ShapeGuard& keep(const ShapeGuard& made);

 private:
  struct Node {
    ShapeGuard guard;
    Node* next;
  };
  std::atomic<Node*> first_{nullptr};
};

}  // namespace opmux::dispatch
