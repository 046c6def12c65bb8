#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace opmux::crash {

/// The function of a plugin or an implementation that runs. The numbers are stored in journals.
enum class Phase : uint8_t {
  run,
  constructor,  ///< dlopen, which runs the constructors of the library
  query,
  init,
  is_available,
  verify,
  create,
  load,
  plan,
};

inline constexpr std::array<std::string_view, 9> kPhaseWords{
    "run", "constructor", "query", "init", "is_available", "verify", "create", "load", "plan"};

/// "run", "constructor", "plan" ...
constexpr std::string_view name_of(Phase phase) { return kPhaseWords[static_cast<size_t>(phase)]; }

/// The phase with this number; `run` if there is none.
constexpr Phase to_phase(uint32_t number) {
  return number < kPhaseWords.size() ? static_cast<Phase>(number) : Phase::run;
}

/// Where a process ended, as part of a sentence: "inside ID", "in the constructor of ID", "in the
/// plan function of ID".
inline std::string place_in(Phase phase, std::string_view id) {
  if (phase == Phase::run) return "inside " + std::string(id);
  const std::string_view function = phase == Phase::constructor ? "" : " function";
  return base::concat("in the ", name_of(phase), function, " of ", id);
}
/// The same for a subject that the sentence has named: "inside it", "in its plan function".
inline std::string place_in_it(Phase phase) {
  if (phase == Phase::run) return "inside it";
  return base::concat("in its ", name_of(phase), phase == Phase::constructor ? "" : " function");
}

}  // namespace opmux::crash
