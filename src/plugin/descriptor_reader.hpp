#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "registry/batch.hpp"

namespace opmux::plugin {

/// What a plugin says of itself, copied out of its descriptor.
struct PluginContents {
  std::string name, version, vendor, build_id;
  std::vector<registry::Batch> batches;  ///< one per well-formed backend
  /// Operators that none of its backends implements; the others are in the batches.
  std::vector<std::string> operators;
  std::vector<registry::Refusal> refused;  ///< backends and answers that are malformed
  opmux_plugin functions{};                ///< init, shutdown, self_test, user_data
};

/// Reads a descriptor, never trusting a field of it; one malformed backend does not stop the
/// others. `owner` is kept by everything that calls into the plugin; `build_id` is taken if the
/// plugin names none. Fails with "plugin.abi_major", "plugin.struct_size", "plugin.name" or a
/// reason of plugin/bounded_read.hpp; refusals also with "plugin.kind", "plugin.flags",
/// "plugin.fact", "plugin.null_function", "plugin.device", "plugin.backend".
Result<PluginContents> read_plugin(const opmux_plugin& plugin, const std::shared_ptr<void>& owner,
                                   const std::string& build_id = {});

/// Asks a query function to describe its plugin, with room for one that writes more than it should.
/// Foreign code runs: hold a ThreadStateGuard. Fails with "plugin.query" or "plugin.threw".
Result<opmux_plugin> query_plugin(opmux_plugin_query_fn query, const opmux_host& host);

}  // namespace opmux::plugin
