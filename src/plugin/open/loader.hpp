#pragma once

#include <functional>
#include <string>
#include <vector>

#include <opmux/abi.h>

#include "crash/journal_part.hpp"
#include "plugin/open/library.hpp"
#include "plugin/open/loaded_plugin.hpp"
#include "plugin/probe/probe.hpp"
#include "plugin/trust/checked_file.hpp"
#include "registry/registry.hpp"

namespace opmux::plugin {

/// The outcome of loading one plugin.
struct PluginReport {
  enum class State { loaded, refused, waiting };

  std::string found_in;  ///< "built in", "installation", "OPMUX_PLUGIN_PATH", "options"
  std::string path;      ///< real path once the file was checked; empty for linked-in plugins
  std::string name, version, vendor, build_id;
  State state = State::refused;
  std::string reason;  ///< reason of the first refusal, such as "plugin.no_query"
  std::string text;
  /// SHA-256 of the file, and the name of the key that signed it; may be empty.
  std::string digest, signer;
  std::vector<std::string> warnings;         ///< findings about the file that did not refuse it
  std::vector<std::string> backends;         ///< names of the registered backends
  std::vector<std::string> implementations;  ///< ids of the registered implementations
  /// Backends, implementations and answers that were refused.
  std::vector<registry::Refusal> refused;
};

/// A plugin file as the crash journal and the quarantine name it.
crash::JournalPart journal_part(const CheckedFile& file);

/// Checks plugin files, passes them through the gates, probes them, opens them and adds their
/// backends to a registry. Each backend is added completely or not at all. Not thread-safe: the
/// owner serialises calls.
class Loader {
 public:
  /// A check of a file before any of its code runs in this process; refuses the file by returning
  /// an error. Gates are called in order.
  using Gate = std::function<Status(const CheckedFile& file)>;

  explicit Loader(registry::Registry& registry, TrustSettings trust = {},
                  std::vector<Gate> gates = {})
      : registry_(registry), trust_(std::move(trust)), gates_(std::move(gates)) {}

  /// Probes a checked file; `as` is the form in which it will be opened.
  using TryOut = std::function<ProbeResult(const CheckedFile& file, const LibraryFile& as)>;
  /// Enables probing: from now on files are probed before they are opened.
  void try_out_with(TryOut try_out) { try_out_ = std::move(try_out); }

  /// Why load_folder() should not open a file; ok if it should.
  using Skip = std::function<Status(const std::string& path)>;
  void skip_with(Skip skip) { skip_ = std::move(skip); }
  /// Loads a file that was skipped.
  PluginReport load_skipped(const std::string& path, std::string_view found_in);
  /// Loads a file that a program asks for now: also one that waits, and one that was refused
  /// before, because the file or its folder may have been put right. Throws std::bad_alloc if there
  /// is not enough memory for one that waits.
  PluginReport load_now(const std::string& path, std::string_view found_in);

  /// Sets the requirements on files that are checked from now on.
  void set_trust(TrustSettings trust) { trust_ = std::move(trust); }

  /// Loads one file. If this loader has already handled the file, returns the earlier report.
  PluginReport load(const std::string& path, std::string_view found_in = "options");

  /// A plugin that was probed but is not loaded until it is needed.
  struct Waiting {
    CheckedFile file;
    Manifest manifest;
  };
  /// In order of discovery.
  const std::vector<Waiting>& waiting() const { return waiting_; }
  /// Loads the deferred plugins that `wanted` selects, and adds their reports to `results`. False
  /// if there is not enough memory for one, which is then still deferred.
  bool load_waiting(const std::function<bool(const Manifest&)>& wanted,
                    std::vector<PluginReport>& results);

  /// Registers a plugin that is linked into the program. Its build is that of the library or
  /// program that contains it.
  PluginReport load_static(opmux_plugin_query_fn query, std::string_view found_in = "built in");
  /// Loads every `*.so` of a folder in bytewise order. A folder that is not absolute
  /// ("trust.relative") or cannot be read ("plugin.folder") gets a report like a file. With
  /// When::wanted, and if try_out_with() was called, plugins that pass the probe are deferred.
  enum class When { now, wanted };
  Status load_folder(const std::string& folder, std::string_view found_in = "options",
                     When when = When::now);
  /// Adds a report for a folder or file that was refused without being examined.
  void refuse(const std::string& path, std::string_view found_in, const Status& why);

  /// Removes the backends of a plugin from the registry. Its code stays mapped unless the plugin is
  /// declared unloadable; then it is unmapped when the last reference is dropped. Returns false if
  /// no such plugin is loaded.
  bool unload(std::string_view name);

  /// The reports of all plugins in order of loading.
  const std::vector<PluginReport>& reports() const { return reports_; }

 private:
  Status pass_gates(const CheckedFile& file) const;
  Result<CheckedFile> checked(const std::string& path, PluginReport& report) const;
  Result<Manifest> tried(const CheckedFile& file) const;
  Status open_into(const CheckedFile& file, PluginReport& report);
  void discover(const std::string& path, std::string_view found_in);
  const PluginReport* known(const std::string& path) const;
  Status stage(const ReadyPlugin& plugin, PluginReport& report);
  static void conclude(PluginReport& report, const Status& outcome);
  PluginReport finish(PluginReport report, const Status& outcome);

  registry::Registry& registry_;
  TrustSettings trust_;
  std::vector<Gate> gates_;
  TryOut try_out_;
  Skip skip_;
  std::vector<Waiting> waiting_;
  std::vector<PluginReport> reports_;
};

}  // namespace opmux::plugin
