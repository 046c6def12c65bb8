#pragma once

#include <memory>
#include <string>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "plugin/descriptor_reader.hpp"

namespace opmux::plugin {

/// A plugin that was described and initialised, ready to be registered.
struct ReadyPlugin {
  PluginContents contents;
  /// Shared by everything in this process that may call into the plugin; the last one to go calls
  /// its shutdown.
  std::shared_ptr<void> life;
};

/// Asks a plugin to describe itself, reads that and calls its init, unless it is alive in this
/// process already. Used for plugins in files and for those linked into the program. Fails with the
/// reasons of plugin/descriptor_reader.hpp, or "plugin.init" with the plugin's text. `code` is kept
/// as long as somebody may call into the plugin.
Result<ReadyPlugin> make_ready(opmux_plugin_query_fn query, const std::string& build_id = {},
                               std::shared_ptr<void> code = {});

}  // namespace opmux::plugin
