#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "policy/files/policy_files.hpp"

namespace opmux::policy {

/// Stores the last known good policy files, so that a process can start with them if the configured
/// files are broken. Each configured path has a separate file in the folder.
class LastGood {
 public:
  /// keep() creates `folder`, which must belong to the user and have mode 0700. `config` is the
  /// configured path.
  LastGood(std::string folder, const std::string& config);

  const std::string& path() const { return path_; }

  /// busy: another process is storing files at the moment, so that nothing was done; try later.
  enum class Kept : uint8_t { yes, busy };
  /// Atomically replaces the stored files. Does nothing if they are unchanged. Does not wait for
  /// other processes. Fails with "config.last_good" if the files cannot be written.
  Result<Kept> keep(const std::vector<FileText>& files) const;
  /// Fails with "config.last_good" if nothing is stored or the file is damaged.
  Result<std::vector<FileText>> read() const;

 private:
  /// The bytes of the stored file, which may be damaged.
  Result<std::string> stored_text() const;

  std::string folder_, path_;
};

/// Stores the files of a runtime each time they come into force. If another process holds the lock
/// of the stored files, a job of the maintenance tries again every kAgainNs. Thread-safe.
class LastGoodWriter {
 public:
  static constexpr uint64_t kAgainNs = 100'000'000;
  /// If the lock is busy for this long, the event "policy.not_kept" is logged once.
  static constexpr uint64_t kBusyForLongNs = 10'000'000'000;

  /// `maintenance` and `log` must outlive the writer, and the maintenance must be stopped first.
  LastGoodWriter(LastGood place, base::Maintenance& maintenance, const base::EventLog& log)
      : place_(std::move(place)), log_(log), retry_(maintenance, [this] { return retrying(); }) {}

  const LastGood& place() const { return place_; }
  /// Stores the files, now or by the job. A failure is logged once; the next files are tried again.
  void store(const std::vector<FileText>& files);

 private:
  /// Files in force that are not stored yet.
  struct Waiting {
    std::optional<std::vector<FileText>> files;
    bool logged = false;  ///< a failure was logged, and no files were stored since
  };
  /// Tries to store the waiting files. False if the lock is busy.
  bool store_waiting();
  void log_failure(std::string_view why);
  /// A job that stores files whose lock was busy when they came into force.
  base::WokenJob::Run retrying();

  const LastGood place_;
  const base::EventLog& log_;
  base::ForkGuarded<Waiting> waiting_;
  base::WokenJob retry_;
};

}  // namespace opmux::policy
