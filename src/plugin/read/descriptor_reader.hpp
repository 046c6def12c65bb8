#pragma once

#include <memory>
#include <string>
#include <vector>

#include <opmux/abi.h>
#include <opmux/status.hpp>

#include "registry/batch.hpp"

namespace opmux::plugin {

/// The contents of a plugin's descriptor, copied.
struct PluginContents {
  std::string name, version, vendor, build_id;
  std::vector<registry::Batch> batches;  ///< one per well-formed backend
  /// Operators that no backend of the plugin implements; the others are in the batches.
  std::vector<std::string> operators;
  std::vector<registry::Refusal> refused;  ///< malformed backends and answers
  opmux_plugin functions{};                ///< init, shutdown, self_test, user_data
};

/// Reads a descriptor without trusting any of its fields. A malformed backend does not affect the
/// others. Everything that calls into the plugin keeps `owner`. `build_id` is used if the plugin
/// states none. Fails with "plugin.abi_major", "plugin.struct_size", "plugin.name" or a reason of
/// plugin/bounded_read.hpp. Refusals also have "plugin.kind", "plugin.flags", "plugin.fact",
/// "plugin.null_function", "plugin.device", "plugin.backend".
Result<PluginContents> read_plugin(const opmux_plugin& plugin, const std::shared_ptr<void>& owner,
                                   const std::string& build_id = {});

/// Calls a plugin's query function, with spare room in case it writes beyond the struct. Runs
/// foreign code: hold a ThreadStateGuard. Fails with "plugin.query" or "plugin.threw".
Result<opmux_plugin> query_plugin(opmux_plugin_query_fn query, const opmux_host& host);

}  // namespace opmux::plugin
