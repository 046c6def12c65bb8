#pragma once

#include <string>
#include <vector>

#include <opmux/runtime.hpp>

#include "base/published.hpp"
#include "config/last_good.hpp"
#include "config/policy_files.hpp"
#include "policy/environment.hpp"
#include "policy/origin_report.hpp"
#include "runtime/maintenance.hpp"
#include "runtime/policy_sources.hpp"

namespace opmux::runtime {

/// How a runtime takes its policy, from options and environment.
struct Mode {
  enum class Kind : uint8_t { dynamic, config, hot_reload, locked };
  Kind kind = Kind::dynamic;
  std::string config, platform, lockfile, state_dir;  ///< paths; empty if there is none
  std::string origin;                                 ///< who said so
  std::string lockfile_origin;                        ///< who named the lockfile; empty: nobody
};
/// "dynamic", "config", "hot_reload", "static".
std::string_view name_of(Mode::Kind kind);

/// Fails with "mode.value" for a word that is none, "mode.files" for one that does not go with the
/// files there are.
Result<Mode> mode_of(const SourceOptions& options, const policy::Environment& environment);

/// Where a platform's file is: a path, or the name of one that was installed.
Result<std::string> find_platform(const std::string& named, const std::string& installed);

/// The policy files of a runtime: read at the start, kept as last known good when they came into
/// force, and followed. Thread-safe once started.
class FollowedFiles {
 public:
  using Files = std::vector<config::FileText>;
  struct Parts {
    PolicySources* sources = nullptr;
    Maintenance* maintenance = nullptr;
    const telemetry::EventLog* log = nullptr;
    std::function<registry::RegistrySnapshotPtr()> registry;
  };
  explicit FollowedFiles(Parts parts) : parts_(std::move(parts)) {}

  /// Reads platform and policy files as the mode wants it.
  Status start(const Mode& mode, const SourceOptions& options);
  /// From now on changes of the files are noticed.
  void follow();

  /// Puts a text in force.
  Status load(const Files& files, std::string name, std::string origin);
  /// All policies as they would be with these files in the place of those in force.
  Result<policy::PolicySet> set_with(const Files& files, std::string name) const;
  const Mode& mode() const { return mode_; }

  /// What `opmux config show` says about mode, files and what became of them.
  std::vector<policy::Setting> settings() const;

 private:
  Status read_platform();
  Status read_config(bool last_known_good);
  Status take_last_good(const Status& why);
  void keep(const Files& files);
  void reload(Result<Files> files);
  void remember(const Files& files);

  Parts parts_;
  Mode mode_;
  bool looking_ = false, keeping_ = true;
  base::Published<Files> seen_;  ///< last, for a child's own watch
};

}  // namespace opmux::runtime
