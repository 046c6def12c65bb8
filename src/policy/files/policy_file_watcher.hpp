#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <opmux/options.hpp>
#include <opmux/policy.hpp>

#include "base/locks.hpp"
#include "base/maintenance.hpp"
#include "base/system/files.hpp"
#include "policy/files/last_good.hpp"
#include "policy/files/mode.hpp"
#include "policy/files/policy_files.hpp"
#include "policy/policy_store.hpp"
#include "policy/rules/origin_report.hpp"

namespace opmux::policy {

/// Debounces file changes, which come in bursts: the action is due after a quiet period, at the
/// latest a fixed time after the first change. The last change of a burst is never missed.
class Debounce {
 public:
  static constexpr uint64_t kQuiet = 50'000'000, kLatest = 250'000'000;  ///< ns
  static constexpr uint64_t kIdle = UINT64_MAX;

  void note(uint64_t now_ns) {
    if (first_ == kIdle) first_ = now_ns;
    last_ = now_ns;
  }
  /// When to act; kIdle if nothing changed. While a file is still being written, the quiet period
  /// does not apply.
  uint64_t due(bool still_written = false) const {
    if (first_ == kIdle) return kIdle;
    return still_written ? first_ + kLatest : std::min(last_ + kQuiet, first_ + kLatest);
  }
  void clear() { first_ = kIdle; }

 private:
  uint64_t first_ = kIdle, last_ = 0;
};

/// Detects possible changes of a file, or of the policy files in a folder: a file is written,
/// replaced by a rename, replaced behind a symbolic link, or deleted and created again. Uses
/// inotify where it works and polls otherwise: on network file systems, or when inotify is out of
/// watches. Writes to other files, wherever they are, cause no events. Not thread-safe.
class PathWatch {
 public:
  enum class Way : uint8_t { kernel, looking };
  static constexpr uint64_t kLookEvery = 100'000'000;  ///< polling interval in ns

  explicit PathWatch(std::string path, Way wanted = Way::kernel);

  Way way() const { return descriptor_ ? Way::kernel : Way::looking; }
  /// Descriptor that is readable when there may be a change; -1 if changed() must be polled.
  int descriptor() const { return descriptor_.get(); }

  /// Whether something may have changed since the last call.
  bool changed();
  /// Whether a file was created or modified and, as far as known, not closed yet.
  bool still_written() const { return !written_.empty(); }

 private:
  /// Per path: identity, size and times of the file that it resolves to, or the error number.
  using Looks = std::map<std::string, std::vector<int64_t>>;

  void follow();
  void follow_path(const std::string& path);
  /// Adds events and a name to the watch of a path; an empty name: the path is a file. Returns
  /// false if the path cannot be watched.
  bool watch(const std::string& path, uint32_t events, const std::string& name);
  bool read_events();
  bool concerns(int number, const std::string& name) const;
  Looks look() const;

  std::string path_;
  base::Descriptor descriptor_;
  struct Watch {
    std::string path;
    uint32_t events = 0;
    /// Names of interest in a folder, "*" = every policy file; empty for a file.
    std::set<std::string> names;
  };
  std::map<int, Watch> watches_;   ///< by inotify watch descriptor
  std::set<std::string> written_;  ///< files that were created or modified and not closed yet
  Looks seen_;
};

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

/// The policy files of a runtime. They are read at start, stored as last known good once they are
/// in force, and watched for changes. Thread-safe once started.
class PolicyFileWatcher {
 public:
  using Files = std::vector<FileText>;

  /// All of them must outlive the watcher.
  PolicyFileWatcher(PolicyStore& store, base::Maintenance& maintenance, const base::EventLog& log,
                    const registry::SnapshotSource& registry)
      : store_(store), maintenance_(maintenance), log_(log), registry_(registry) {}

  /// Reads the platform and policy files that the mode requires.
  Status start(const Mode& mode, const SourceOptions& options, PolicyTrust trust);
  /// Starts watching the files in mode hot_reload.
  void follow();

  /// Puts the policy of these files in force.
  Status load(const Files& files, std::string name, std::string origin);
  /// The policies of the runtime with these files in place of the current ones.
  Result<PolicySet> set_with(const Files& files, std::string name) const;
  /// Refuses a file that others can write or logs a warning, as PolicyTrust says.
  Status check_writers(const Files& files) const;
  const Mode& mode() const { return mode_; }

  /// The lines of `opmux config show` about mode and files.
  std::vector<Setting> settings() const;

 private:
  Status read_platform();
  Status read_platform(const std::string& path);
  Status read_config();
  Status take_last_good(const Status& why);
  Result<Policy> parse(const Files& files) const;
  void reload(Result<Files> files);
  void remember(const Files& files);

  Setting platform_;  ///< the line of `opmux config show` about the platform
  PolicyStore& store_;
  base::Maintenance& maintenance_;
  const base::EventLog& log_;
  const registry::SnapshotSource& registry_;
  Mode mode_;
  bool looking_ = false;
  PolicyTrust policy_trust_ = PolicyTrust::warn;
  /// Last contents read, for the watch that a forked child creates.
  base::Published<Files> seen_;
  std::optional<LastGoodWriter> last_good_;  ///< empty if no files are stored
};

}  // namespace opmux::policy
