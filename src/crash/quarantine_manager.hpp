#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/health.hpp>
#include <opmux/status.hpp>

#include "base/event_log.hpp"
#include "base/locks.hpp"
#include "crash/journal_part.hpp"
#include "crash/quarantine_file.hpp"
#include "crash/settlement.hpp"
#include "registry/snapshot.hpp"

namespace opmux::crash {

/// A runtime's use of the process's crash journal, and the quarantines that apply to it.
/// Thread-safe once started.
class QuarantineManager {
 public:
  using Utc = std::function<std::chrono::sys_seconds()>;

  /// The log must outlive the manager.
  QuarantineManager(base::EventLog& log, Utc utc) : log_(log), utc_(std::move(utc)), store_("") {}
  ~QuarantineManager();
  QuarantineManager(const QuarantineManager&) = delete;
  QuarantineManager& operator=(const QuarantineManager&) = delete;

  /// If a journal is wanted, evaluates the journals of ended processes and opens one. Problems are
  /// logged and counted.
  void start(const std::string& state_dir, CrashJournal wish);

  /// Called before a snapshot is published: writes the names of its implementations to the journal
  /// and marks the quarantined ones.
  void apply(const registry::RegistrySnapshotPtr& snapshot);

  /// Refuses a quarantined plugin file ("health.quarantined"); call it before code of the file
  /// runs.
  Status check_plugin(const JournalPart& part);

  /// The current contents of the store. Entries of implementations and backends in `snapshot` and
  /// in `deferred` plugins, and of plugins that this runtime found, are marked `here`.
  Quarantine list(const registry::RegistrySnapshot& snapshot,
                  const std::vector<JournalPart>& deferred = {});
  /// Removes quarantines and suspicions of one implementation, or of all if `id` is empty; returns
  /// how many. Later decisions of this runtime may differ; a quarantined plugin file is opened by
  /// the next runtime.
  Result<size_t> clear(std::string_view id, const registry::RegistrySnapshot& snapshot);
  CrashJournalState state() const;

 private:
  int64_t now() const { return utc_().time_since_epoch().count(); }
  void join(const std::string& folder, bool handler);
  void read_store();
  void tell(const std::vector<JournalNews>& news);
  void log_problem(const Status& why);
  /// Writes the names of implementations to the journal. Returns whether it could.
  bool note_names(const std::vector<const registry::ImplementationRecord*>& implementations);
  void mark(const registry::RegistrySnapshot& snapshot);
  /// Sets or clears the reason of one implementation or backend. `entry` is null if it is not
  /// quarantined.
  void mark(std::atomic<const std::string*>& reason, const Quarantined* entry);
  const std::string* text_for(const Quarantined& entry);

  base::EventLog& log_;
  const Utc utc_;
  QuarantineStore store_;
  base::Published<QuarantineList> list_;  ///< quarantines that apply to this runtime
  std::atomic<bool> joined_{false}, handler_{false};
  CrashJournalState at_start_;
  std::atomic<uint64_t> unnoted_{0};
  struct Texts {
    /// Referenced by `quarantined` of implementations and backends.
    std::vector<std::unique_ptr<const std::string>> kept;
    registry::RegistrySnapshotPtr applied;
    std::vector<JournalPart> plugins;  ///< those that check_plugin() was asked about
  };
  base::ForkGuarded<Texts> texts_;
};

}  // namespace opmux::crash
