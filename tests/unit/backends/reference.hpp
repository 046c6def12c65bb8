// The reference backend, obtained from its query function.
#pragma once

#include "abi_call.hpp"

extern "C" int32_t opmux_plugin_query_v1_reference(const opmux_host* host, opmux_plugin* out);

namespace opmux::testing {

inline const opmux_impl& reference(std::string_view op) {
  static const LoadedPlugin plugin{opmux_plugin_query_v1_reference};
  const opmux_impl* impl = plugin.find(op, "scalar");
  if (!impl) throw std::runtime_error("no reference of " + std::string(op));
  return *impl;
}

}  // namespace opmux::testing
