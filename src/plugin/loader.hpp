#pragma once

#include <functional>
#include <string>
#include <vector>

#include <opmux/abi.h>

#include "plugin/loaded_plugin.hpp"
#include "registry/registry.hpp"

namespace opmux::plugin {

/// What became of one plugin.
struct PluginReport {
  enum class State { loaded, refused };

  std::string path;  ///< empty for one that is linked into the program
  std::string name, version, vendor, build_id;
  State state = State::refused;
  std::string reason;  ///< "plugin.no_query" ...; of the first refusal
  std::string text;
  std::vector<std::string> backends;         ///< that were registered
  std::vector<std::string> implementations;  ///< ids that were registered
  std::vector<registry::Refusal> refused;    ///< everything that was not
};

/// Takes plugins through the gates, opens them and puts what they bring into a registry, one
/// backend after the other, each whole or not at all. Not thread-safe: its owner serialises calls.
class Loader {
 public:
  /// Looks at a file before any of its code runs; refuses with a Status. Gates are asked in order.
  using Gate = std::function<Status(const std::string& real_path)>;

  explicit Loader(registry::Registry& registry, std::vector<Gate> gates = {})
      : registry_(registry), gates_(std::move(gates)) {}

  /// Loads one file. A file that this loader has tried before is not tried again.
  PluginReport load(const std::string& path);
  /// Registers a plugin that is linked into the program.
  PluginReport load_static(opmux_plugin_query_fn query);
  /// Loads all plugins of a folder in bytewise order.
  Status load_folder(const std::string& folder);

  /// Takes the backends of a plugin out of the registry; its code stays mapped. False if no such
  /// plugin is loaded.
  bool unload(std::string_view name);

  /// All plugins in order of loading.
  const std::vector<PluginReport>& reports() const { return reports_; }

 private:
  Status pass_gates(const std::string& real_path) const;
  Status load_into(const std::string& real_path, PluginReport& report);
  Status stage(const ReadyPlugin& plugin, PluginReport& report);
  PluginReport finish(PluginReport report, const Status& outcome);

  registry::Registry& registry_;
  std::vector<Gate> gates_;
  std::vector<PluginReport> reports_;
};

}  // namespace opmux::plugin
