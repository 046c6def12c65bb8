#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "schema/dependencies.hpp"

namespace opmux::health {

/// Identifies a class of calls: device, element type, and each dimension rounded up to a power of
/// two. Dimensions are in schema order, `rows` last.
struct BreakerKey {
  static constexpr uint8_t kAbsentDim = 0xFF;

  uint64_t device = 0;
  uint32_t dtype = 0;
  std::array<uint8_t, schema::kMaxDims + 1> log2{};  ///< rounded up

  friend bool operator==(const BreakerKey&, const BreakerKey&) = default;

  static BreakerKey of(const schema::Signature& signature);
};

/// "f32 H<=4096 rows<=32 on cpu:0"
std::string describe(const BreakerKey& key, const schema::Schema& schema);

/// Adds the dependencies on facts that distinguish calls of this class from others.
void add_questions(const BreakerKey& key, const schema::Schema& schema,
                   schema::Dependencies& dependencies);

}  // namespace opmux::health
