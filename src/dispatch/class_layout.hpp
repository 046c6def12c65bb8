#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "registry/facts.hpp"

namespace opmux::dispatch {

/// The class of a call: two calls with equal keys get the same decision.
struct ClassKey {
  static constexpr size_t kMaxWords = 8;
  std::array<uint64_t, kMaxWords> words{};
  uint32_t count = 0;

  uint64_t hash() const;
  bool equals(const ClassKey& other) const;
};

/// How arguments are mapped to their class: the yes/no answers about divisibility and equality, the
/// interval that a dimension falls into, and the exact value of what counts exactly. Immutable.
class ClassLayout {
 public:
  explicit ClassLayout(const registry::Dependencies& dependencies);

  /// False if the key has no room, or none for these arguments: such calls are decided each time.
  bool key_of(const registry::Signature& signature, ClassKey& key) const;

  bool fits() const { return fits_; }

 private:
  /// Thresholds on one dimension, ascending: the index of the interval replaces the value.
  struct Intervals {
    registry::Fact dim;
    std::vector<int64_t> cuts;  ///< a value v lies in interval #{cut <= v}
  };

  std::vector<registry::Predicate> bits_;
  std::vector<Intervals> intervals_;
  std::vector<registry::Fact> small_;  ///< exact, packed in 16 bits each
  std::vector<registry::Fact> wide_;   ///< exact, one word each
  bool fits_ = true;
};

}  // namespace opmux::dispatch
