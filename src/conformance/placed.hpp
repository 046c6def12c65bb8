#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"

namespace opmux::conformance {

/// A defect: a stable word for programs and a sentence for people.
struct Problem {
  std::string kind, detail;
};

/// A case in memory, ready to be called. All bytes outside of inputs hold a pattern: outputs, gaps
/// between rows, and the surrounding memory. The case and the arenas must outlive this object.
class Placed {
 public:
  /// With `side`, the tensors are copied to device memory, each with a margin of watched bytes, and
  /// fetch() copies them back.
  Placed(Arenas& arenas, const Case& c, std::byte pattern, DeviceSide* side = nullptr);

  /// Whether all tensors could be placed.
  const Status& ready() const { return ready_; }
  /// Waits for the device and copies its memory back. Fails with the error of the call, if any.
  Status fetch();

  std::span<const opmux_arg> arguments() const { return args_; }
  /// A tensor's current elements, row-major without gaps.
  std::vector<std::byte> elements(size_t argument) const;
  /// Finds bytes that changed although they must not.
  std::optional<Problem> damage() const;
  /// Whether all tensors and their surroundings are unchanged since before the call.
  bool untouched() const;

 private:
  struct Region {
    std::byte* first = nullptr;       ///< the tensor's first element
    std::byte* low = nullptr;         ///< start of the watched bytes
    std::vector<std::byte> pristine;  ///< the watched bytes before the call
  };
  std::byte* first_of(const Arena& arena, const CaseTensor& tensor) const;
  void place(Arena& arena, std::byte pattern, size_t argument);
  opmux_tensor tensor_of(size_t argument);
  void describe(size_t argument);
  std::optional<Problem> damage_of(size_t argument) const;

  const Case* case_;
  DeviceSide* side_;
  Status ready_;
  std::vector<Region> regions_;  ///< indexed by argument
  std::vector<opmux_tensor> tensors_;
  std::vector<opmux_arg> args_;
};

}  // namespace opmux::conformance
