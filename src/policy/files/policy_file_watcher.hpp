#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/options.hpp>
#include <opmux/policy.hpp>

#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "policy/files/last_good.hpp"
#include "policy/files/path_watch.hpp"
#include "policy/files/policy_files.hpp"
#include "policy/policy_store.hpp"
#include "policy/rules/environment.hpp"
#include "policy/rules/origin_report.hpp"

namespace opmux::policy {

/// Watches policy files. After a burst of changes it reads all files and reports them if they
/// differ from the last ones. A read error is reported once.
class PolicyWatch final : public base::Maintenance::Job {
 public:
  using Files = std::vector<FileText>;
  using Reload = std::function<void(Result<Files> files)>;

  /// `seen` are the contents that are already in force.
  PolicyWatch(std::string path, PathWatch::Way way, Files seen, Reload reload)
      : path_(path),
        watch_(std::move(path), way),
        seen_(std::move(seen)),
        reload_(std::move(reload)) {}

  uint64_t run(uint64_t now_ns) override;
  int descriptor() const override { return watch_.descriptor(); }

 private:
  void read_again();

  std::string path_;
  PathWatch watch_;
  Debounce debounce_;
  Files seen_;
  std::string failure_;  ///< the read error that was reported last
  Reload reload_;
  bool started_ = false;
};

/// How a runtime gets its policy: the result of options and environment.
struct Mode {
  enum class Kind : uint8_t { dynamic, config, hot_reload, locked };
  Kind kind = Kind::dynamic;
  std::string config, platform, lockfile, state_dir;  ///< paths; empty if not set
  /// Source of the mode, such as "OPMUX_MODE (environment)".
  std::string origin;
  /// Source of the lockfile's path; empty if it was found beside the policy file.
  std::string lockfile_origin;
};
/// "dynamic", "config", "hot_reload", "static".
std::string_view name_of(Mode::Kind kind);

/// Fails with "mode.value" for an unknown mode, and with "mode.files" if the mode does not match
/// the configured files.
Result<Mode> mode_of(const SourceOptions& options, const Environment& environment);

/// The path of a platform file: `named` itself if it is a path, else an installed platform of that
/// name.
Result<std::string> find_platform(const std::string& named, const std::string& installed);

/// The policy files of a runtime. They are read at start, stored as last known good once they are
/// in force, and watched for changes. If another process holds the lock of the stored files, a job
/// of the maintenance tries again every kKeepAgainNs until the files are stored. Thread-safe once
/// started.
class PolicyFileWatcher {
 public:
  using Files = std::vector<FileText>;
  static constexpr uint64_t kKeepAgainNs = 100'000'000;
  /// If the lock is busy for this long, the event "policy.not_kept" is logged once.
  static constexpr uint64_t kBusyForLongNs = 10'000'000'000;

  /// All of them must outlive the watcher.
  PolicyFileWatcher(PolicyStore& store, base::Maintenance& maintenance, const base::EventLog& log,
                    const registry::SnapshotSource& registry)
      : store_(store), maintenance_(maintenance), log_(log), registry_(registry) {}

  /// Reads the platform and policy files that the mode requires.
  Status start(const Mode& mode, const SourceOptions& options);
  /// Starts watching the files in mode hot_reload.
  void follow();

  /// Puts the policy of these files in force.
  Status load(const Files& files, std::string name, std::string origin);
  /// The policies of the runtime with these files in place of the current ones.
  Result<PolicySet> set_with(const Files& files, std::string name) const;
  const Mode& mode() const { return mode_; }

  /// The lines of `opmux config show` about mode and files.
  std::vector<Setting> settings() const;

 private:
  Status read_platform();
  Status read_config(bool last_known_good);
  Status take_last_good(const Status& why);
  class KeepJob;
  /// Files in force that are not stored yet.
  struct Unkept {
    std::optional<Files> files;
    bool told = false;  ///< a failure was logged, and no files were stored since
  };
  /// Stores the files as last known good, now or by a job. A failure is logged once; the next files
  /// are tried again.
  void keep(const Files& files);
  /// Tries to store the files in `unkept_`. False if the lock is busy.
  bool keep_pending();
  void tell_not_kept(std::string_view why);
  /// Lets the job run. Starts it at the first call.
  void wake_keep_job();
  void reload(Result<Files> files);
  void remember(const Files& files);

  PolicyStore& store_;
  base::Maintenance& maintenance_;
  const base::EventLog& log_;
  const registry::SnapshotSource& registry_;
  Mode mode_;
  bool looking_ = false, keeping_ = true;
  /// Last contents read, for the watch that a forked child creates.
  base::Published<Files> seen_;
  base::ForkGuarded<Unkept> unkept_;
  std::atomic<bool> keep_job_started_{false};
  std::atomic<int> keep_wake_{-1};  ///< eventfd of the job in this process
};

}  // namespace opmux::policy
