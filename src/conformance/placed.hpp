#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/arena.hpp"
#include "conformance/case.hpp"
#include "conformance/device_side.hpp"

namespace opmux::conformance {

/// What is wrong: a word for programs and a sentence for people.
struct Problem {
  std::string kind, detail;
};

/// A case in memory, ready to be called. Every byte that belongs to no input holds a pattern:
/// outputs, gaps between rows, and what lies around. The case and the arenas must outlive it.
class Placed {
 public:
  /// With a device's side the tensors lie there, each between bytes that are watched; what is here
  /// is sent there and fetched again.
  Placed(Arenas& arenas, const Case& c, std::byte pattern, DeviceSide* side = nullptr);

  /// Whether everything is where it should be before a call.
  const Status& ready() const { return ready_; }
  /// Waits for the device, and gets what is there now. Fails with how the call ended there.
  Status fetch();

  std::span<const opmux_arg> arguments() const { return args_; }
  /// A tensor's elements as they are now, row-major without gaps.
  std::vector<std::byte> elements(size_t argument) const;
  /// Looks for bytes that changed and must not have.
  std::optional<Problem> damage() const;
  /// Whether all tensors hold what they held before the call.
  bool untouched() const;

 private:
  struct Region {
    std::byte* first = nullptr;       ///< the tensor's first element
    std::byte* low = nullptr;         ///< of what is watched
    std::vector<std::byte> pristine;  ///< what was there
  };
  std::byte* first_of(const Arena& arena, const CaseTensor& tensor) const;
  void place(Arena& arena, std::byte pattern, size_t argument);
  opmux_tensor tensor_of(size_t argument);
  void describe(size_t argument);
  std::optional<Problem> damage_of(size_t argument) const;

  const Case* case_;
  DeviceSide* side_;
  Status ready_;
  std::vector<Region> regions_;  ///< by argument
  std::vector<opmux_tensor> tensors_;
  std::vector<opmux_arg> args_;
};

}  // namespace opmux::conformance
