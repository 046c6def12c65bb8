#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <opmux/policy.hpp>
#include <opmux/status.hpp>

namespace opmux {

/// Where policy comes from besides code, and how a runtime follows it. An empty text means what the
/// environment says.
struct SourceOptions {
  /// `static` (a lockfile must be there and fit), `dynamic` (no file), `config` (files are read
  /// once), `hot_reload` (files are watched), `auto` (the first of static, hot_reload and dynamic
  /// for which there are files). Empty: OPMUX_MODE, or auto.
  std::string mode = {};
  /// A policy file, or a folder whose *.yaml and *.json are one list. Empty: OPMUX_CONFIG. A
  /// relative path is seen from where the process stands when the runtime is made.
  std::string config = {};
  /// A policy file of the machine, or the name of one that was installed. Empty: OPMUX_PLATFORM.
  std::string platform = {};
  /// What mode static chooses by. Empty: OPMUX_LOCKFILE, or opmux.lock beside `config`.
  std::string lockfile = {};
  /// False: mode static waits for Runtime::freeze, so that a program can register what it brings.
  bool freeze_at_start = true;
  /// Keep the last policy that came into force and start with it if the files are broken.
  bool last_known_good = true;
  /// False: no thread is started, the program calls Runtime::tick.
  bool own_thread = true;
  /// Look at files in intervals even where the kernel would tell of changes.
  bool look_at_files = false;
  /// The time by which rules expire; the system's if empty.
  std::function<std::chrono::sys_seconds()> utc = {};
};

/// The policy text in force, and what became of those before and after it.
struct PolicyState {
  std::string name;         ///< "policy.yaml"; empty if no text is in force
  std::string digest;       ///< SHA-256 of the text; empty if the library was built without
  std::string origin;       ///< "file", "last known good", "load_policy", "rollback"
  uint64_t version = 0;     ///< one more for each text that came into force; goes back with it
  uint64_t generation = 0;  ///< of the snapshot that it came into force with
  uint64_t rules = 0, expired = 0;
  uint64_t unmatched = 0;  ///< rules that name only what is not present in this process now
  /// The first sixteen of them: `"other-hosts" (policy.yaml:12)`.
  std::vector<std::string> unmatched_rules;
  uint64_t previous_version = 0;  ///< what rollback() would bring back; 0: nothing
  uint64_t loaded = 0, refused = 0, rolled_back = 0, lapsed = 0;  ///< how often since the start
  Status last_refusal;                                            ///< ok if there was none
};

/// A text that came into force, or did not.
struct PolicyChange {
  std::string name, digest, origin;
  uint64_t version = 0, generation = 0;  ///< of what is in force now
  Status status = {};                    ///< ok: in force; else why it is not, and nothing changed
};

/// May veto a policy that would come into force; called before the dry run, from any thread.
using PolicyValidator = std::function<Status(const Policy& next)>;
/// Told after each change or refusal, from any thread, never under a lock.
using PolicyListener = std::function<void(const PolicyChange&)>;

}  // namespace opmux
