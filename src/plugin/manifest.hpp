#pragma once

#include "plugin/descriptor_reader.hpp"
#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// What of a plugin's contents others need to know to use it later.
Manifest manifest_of(const PluginContents& contents);

}  // namespace opmux::plugin
