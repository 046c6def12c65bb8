#pragma once

#include <functional>
#include <memory>
#include <string>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "crash/phase.hpp"
#include "plugin/read/descriptor_reader.hpp"

namespace opmux::plugin {

/// A plugin that was queried and initialised and can be registered.
struct ReadyPlugin {
  PluginContents contents;
  /// Shared by everything in this process that may call into the plugin. The last owner calls the
  /// plugin's shutdown.
  std::shared_ptr<void> life;
};

/// Queries a plugin, reads its descriptor and calls its init unless it is already initialised in
/// this process. Used for plugins in files and for plugins linked into the program. Fails with the
/// reasons of plugin/descriptor_reader.hpp, or with "plugin.init" and the plugin's message. `code`
/// is kept for as long as anything may call into the plugin. `enter`, if set, is called before each
/// function of the plugin: with `query`, then with `init`.
Result<ReadyPlugin> make_ready(opmux_plugin_query_fn query, const std::string& build_id = {},
                               std::shared_ptr<void> code = {},
                               const std::function<void(crash::Phase)>& enter = {});

}  // namespace opmux::plugin
