#pragma once

#include <functional>
#include <string>
#include <vector>

#include <opmux/abi.h>

#include "plugin/checked_file.hpp"
#include "plugin/loaded_plugin.hpp"
#include "plugin/probe.hpp"
#include "registry/registry.hpp"

namespace opmux::plugin {

/// What became of one plugin.
struct PluginReport {
  enum class State { loaded, refused, waiting };

  std::string found_in;  ///< "built in", "installation", "OPMUX_PLUGIN_PATH", "options"
  std::string path;      ///< real once the file was checked; empty for what is linked in
  std::string name, version, vendor, build_id;
  State state = State::refused;
  std::string reason;  ///< "plugin.no_query" ...; of the first refusal
  std::string text;
  std::string digest, signer;                ///< of the file, as far as they were asked for
  std::vector<std::string> warnings;         ///< what was found in the file and did not refuse it
  std::vector<std::string> backends;         ///< that were registered
  std::vector<std::string> implementations;  ///< ids that were registered
  std::vector<registry::Refusal> refused;    ///< everything that was not
};

/// Checks files, takes them through the gates, opens them and puts what they bring into a registry,
/// one backend after the other, each whole or not at all. Not thread-safe: its owner serialises
/// calls.
class Loader {
 public:
  /// Looks at a checked file before any of its code runs here; refuses with a Status. Gates are
  /// asked in order.
  using Gate = std::function<Status(const CheckedFile& file)>;

  explicit Loader(registry::Registry& registry, TrustSettings trust = {},
                  std::vector<Gate> gates = {})
      : registry_(registry), trust_(std::move(trust)), gates_(std::move(gates)) {}

  /// What the trial of a checked file gave, as it will be opened.
  using TryOut = std::function<Verdict(const CheckedFile& file, const LibraryFile& as)>;
  /// From now on files are tried before they are opened.
  void try_out_with(TryOut try_out) { try_out_ = std::move(try_out); }

  /// Loads one file. A file that this loader has tried before is not tried again.
  PluginReport load(const std::string& path, std::string_view found_in = "options");

  /// What waits, in the order of discovery.
  struct Waiting {
    CheckedFile file;
    Manifest manifest;
  };
  const std::vector<Waiting>& waiting() const { return waiting_; }
  /// Loads those that wait and are wanted; returns what became of them.
  std::vector<PluginReport> load_waiting(const std::function<bool(const Manifest&)>& wanted);

  /// Registers a plugin that is linked into the program.
  PluginReport load_static(opmux_plugin_query_fn query);
  /// Loads every `*.so` of a folder in bytewise order. A folder that is not absolute
  /// ("trust.relative"), or that cannot be read ("plugin.folder"), is reported like a file.
  /// When it says so, and try_out_with was called, what is found good waits until it is wanted.
  enum class When { now, wanted };
  Status load_folder(const std::string& folder, std::string_view found_in = "options",
                     When when = When::now);
  /// Reports a folder or file that is not even looked at.
  void refuse(const std::string& path, std::string_view found_in, const Status& why);

  /// Takes the backends of a plugin out of the registry. Its code stays mapped unless the plugin
  /// says that it can go; then it goes when nothing refers to it. False if no such plugin is
  /// loaded.
  bool unload(std::string_view name);

  /// All plugins in order of loading.
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
  std::vector<Waiting> waiting_;
  std::vector<PluginReport> reports_;
};

}  // namespace opmux::plugin
