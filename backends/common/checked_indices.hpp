// Range checks of indices that a call passes as data (token ids, positions, slots). Every backend
// runs them before it writes any output and reports the same error codes and texts.
#pragma once

#include <opmux/abi.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "backends/common/integers.hpp"
#include "backends/common/rows.hpp"

namespace opmux::backends {

// An error in a call's data: reason code and text. Converts to true if there is an error.
struct Wrong {
  std::string_view code;
  std::string text;
  explicit operator bool() const { return !code.empty(); }
};

// The integers of a tensor, indexed in row-major order.
class Indices {
 public:
  explicit Indices(const opmux_tensor& tensor) : tensor_(&tensor), places_(tensor, 0) {}

  int64_t count() const { return places_.count(); }
  int64_t operator[](int64_t i) const { return integer_at(*tensor_, places_.offset(i)); }

  // Index of the first value outside [first, last); count() if all are inside.
  int64_t first_outside(int64_t first, int64_t last) const {
    int64_t i = 0;
    while (i < count() && (*this)[i] >= first && (*this)[i] < last) ++i;
    return i;
  }

 private:
  const opmux_tensor* tensor_;
  Rows places_;
};

// Reports the first index outside [0, size), e.g. "position 7 of token 0 is outside [0, 2)".
inline Wrong outside(const Indices& indices, int64_t size, std::string_view code,
                     std::string_view noun) {
  const int64_t i = indices.first_outside(0, size);
  if (i == indices.count()) return {};
  return {code, std::string(noun) + " " + std::to_string(indices[i]) + " of token " +
                    std::to_string(i) + " is outside [0, " + std::to_string(size) + ")"};
}

// Checks the ids of embedding.
inline Wrong wrong_id(const opmux_tensor& weight, const Indices& ids) {
  return outside(ids, weight.shape[0], "embedding.id", "id");
}

// Checks the positions of rotary_embedding.
inline Wrong wrong_position(const opmux_tensor& cos_sin, const Indices& positions) {
  return outside(positions, cos_sin.shape[0], "rotary.position", "position");
}

// Checks the slots of reshape_and_cache; a negative slot is valid and means "do not store".
inline Wrong wrong_slot(const opmux_tensor& cache, const Indices& slots) {
  const int64_t places = cache.shape[0] * cache.shape[1];
  const int64_t i = slots.first_outside(std::numeric_limits<int64_t>::min(), places);
  if (i == slots.count()) return {};
  return {"cache.slot", "slot " + std::to_string(slots[i]) + " of token " + std::to_string(i) +
                            " is not below " + std::to_string(places)};
}

}  // namespace opmux::backends
