#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/export.hpp>
#include <opmux/status.hpp>

/// Calls that went wrong, made again from their files; see docs/replay.md and Runtime::replay.
namespace opmux {

struct ReplayOptions {
  /// Who shall run it: ids. Empty: the implementation that it went wrong with.
  std::vector<std::string> implementations = {};
  /// Look for smaller dimensions with which the first of them still goes wrong.
  bool minimize = false;
};

enum class ReplayVerdict : uint8_t {
  agrees,   ///< its result is right
  differs,  ///< an element is not what it should be
  fails,    ///< it ended with an outcome that is not ok
  cannot,   ///< it could not be asked
};

/// "agrees", "differs", "fails", "cannot".
OPMUX_API std::string_view name_of(ReplayVerdict verdict) noexcept;

/// The first element that is not what it should be.
struct ReplayDifference {
  std::string argument;
  std::vector<int64_t> index;
  double got = 0;
  double expected = 0;  ///< what the reference has
  double allowed = 0;   ///< how far from it a right result may be
};

/// How one implementation did.
struct ReplayedImplementation {
  std::string id;
  ReplayVerdict verdict = ReplayVerdict::cannot;
  std::string text;  ///< one sentence
  std::optional<ReplayDifference> difference = {};
};

/// What a recorded call did when it was made again.
struct OPMUX_API ReplayReport {
  std::string op;
  std::string recorded;  ///< the implementation that it went wrong with
  std::string cause;     ///< "failed" or "diverged"
  std::string reason;    ///< a word for programs: "call.failed"
  std::string says;      ///< what was said then
  std::string reference;
  std::string arguments;           ///< of the call that was made, as `opmux explain` takes them
  std::vector<std::string> notes;  ///< what is not as it was
  bool other_values = false;       ///< elements that the file does not have were drawn
  std::vector<ReplayedImplementation> implementations;
  /// After minimizing: the smaller call, as the bytes of a file, and how many were tried. Empty if
  /// it was not asked for or did not go wrong.
  std::string smaller;
  std::string smaller_arguments;
  uint64_t tried = 0;

  /// The worst: `fails` and `differs` before `cannot` before `agrees`.
  ReplayVerdict verdict() const noexcept;
  std::string to_string() const;
};

}  // namespace opmux
