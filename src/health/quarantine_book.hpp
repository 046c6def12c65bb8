#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "health/journal_reader.hpp"

namespace opmux::health {

inline constexpr int64_t kQuarantineSeconds = 7 * 24 * 3600;

/// An implementation that may not run, by id and build.
struct Quarantined {
  std::string id, build;
  std::string how;  ///< "SIGSEGV", "exit", or "suspect": alone in common to two unclean ends
  int64_t since = 0, expires = 0;  ///< seconds since 1970

  friend bool operator==(const Quarantined&, const Quarantined&) = default;
};

/// A process that was killed, with what it was inside of.
struct UncleanEnd {
  struct Suspect {
    std::string id, build;
    friend bool operator==(const Suspect&, const Suspect&) = default;
  };
  int64_t when = 0;  ///< it was found
  uint32_t process = 0;
  std::vector<Suspect> suspects;

  friend bool operator==(const UncleanEnd&, const UncleanEnd&) = default;
};

/// What is known of crashes, as it stands in the store. Plain data.
struct QuarantineBook {
  static constexpr size_t kMostEnds = 64;  ///< later ones push out the oldest

  std::vector<Quarantined> entries;
  std::vector<UncleanEnd> ends;
  uint32_t damaged = 0;  ///< lines that could not be read

  /// The entry in force for an implementation; null if there is none.
  const Quarantined* find(std::string_view id, std::string_view build, int64_t now) const;
  /// Drops what is expired.
  void forget_old(int64_t now);

  std::string text() const;
  static constexpr std::string_view kTitle = "opmux quarantine 1";
  /// What can be read of a text; false if it is of another version.
  bool parse(std::string_view text);
};

/// What was made of the end of a process.
struct Judgement {
  enum class Kind : uint8_t {
    clean,      ///< nothing was in flight, or nobody kept the journal
    elsewhere,  ///< a thread faulted outside of every implementation
    blamed,     ///< the faulting thread's implementation is quarantined
    reference,  ///< it is a reference, which always stays
    suspects,   ///< killed with these in flight
    alone,      ///< for the second time, and only one was in flight both times: quarantined
  };
  Kind kind = Kind::clean;
  std::string id, how;
  size_t suspects = 0;
};

/// Draws the conclusion from the end of a process and enters it.
Judgement judge(const JournalEnd& end, int64_t now, QuarantineBook& book);

}  // namespace opmux::health
