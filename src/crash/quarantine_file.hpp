#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "crash/journal_reader.hpp"

namespace opmux::crash {

inline constexpr int64_t kQuarantineSeconds = 7 * 24 * 3600;

/// An implementation that is excluded from dispatch, by id and build; or a backend, or a plugin
/// file that is not opened (crash/journal_part.hpp).
struct Quarantined {
  std::string id, build;
  /// "SIGSEGV", "exit", or "suspect" (the only implementation in flight at two unclean ends).
  std::string how;
  int64_t since = 0, expires = 0;  ///< seconds since 1970
  Phase phase = Phase::run;        ///< the function that the process ended in

  friend bool operator==(const Quarantined&, const Quarantined&) = default;
};

/// A process that was killed, and the implementations that were in flight then.
struct UncleanEnd {
  struct Suspect {
    std::string id, build;
    friend bool operator==(const Suspect&, const Suspect&) = default;
  };
  int64_t when = 0;  ///< when its journal was read
  uint32_t process = 0;
  std::vector<Suspect> suspects;

  friend bool operator==(const UncleanEnd&, const UncleanEnd&) = default;
};

/// The contents of the quarantine file. Plain data.
struct QuarantineList {
  static constexpr size_t kMostEnds = 64;  ///< the oldest are dropped beyond this

  std::vector<Quarantined> entries;
  std::vector<UncleanEnd> ends;
  uint32_t damaged = 0;  ///< lines that could not be parsed

  /// The unexpired entry of an implementation; null if there is none.
  const Quarantined* find(std::string_view id, std::string_view build, int64_t now) const;
  /// Drops expired entries and ends.
  void forget_old(int64_t now);

  std::string text() const;
  static constexpr std::string_view kTitle = "opmux quarantine 1";
  /// Parses a text and skips lines that are damaged. Returns false if the text has another version.
  bool parse(std::string_view text);
};

/// The conclusion from the end of a process.
struct Judgement {
  enum class Kind : uint8_t {
    clean,      ///< nothing was in flight, or no runtime used the journal
    elsewhere,  ///< a thread faulted outside every implementation
    blamed,     ///< the implementation of the faulting thread is quarantined
    reference,  ///< the faulting thread was in a reference, which is never quarantined
    suspects,   ///< the process was killed while these were in flight
    /// The second such kill with a single implementation in common, which is quarantined.
    alone,
  };
  Kind kind = Kind::clean;
  std::string id, how;
  size_t suspects = 0;
  Phase phase = Phase::run;
};

/// Draws the conclusion from the end of a process and records it in the list.
Judgement judge(const JournalEnd& end, int64_t now, QuarantineList& list);

/// The quarantine list as a file that processes share. Changes are atomic.
class QuarantineStore {
 public:
  explicit QuarantineStore(std::string folder) : folder_(std::move(folder)) {}

  std::string path() const { return folder_ + "/quarantine"; }
  /// Returns an empty list if the file does not exist. Fails with "quarantine.file" or
  /// "quarantine.version".
  Result<QuarantineList> read() const;
  /// Reads the list, calls `edit`, and writes the list if `edit` returns true. `list` receives the
  /// edited contents even if the file could not be written.
  Status change(QuarantineList& list, const std::function<bool(QuarantineList&)>& edit) const;

 private:
  std::string folder_;
};

}  // namespace opmux::crash
