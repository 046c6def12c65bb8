#pragma once

#include "plugin/descriptor_reader.hpp"
#include "plugin/verdict.hpp"

namespace opmux::plugin {

/// The part of a plugin's contents that is needed to decide later whether to load it.
Manifest manifest_of(const PluginContents& contents);

}  // namespace opmux::plugin
