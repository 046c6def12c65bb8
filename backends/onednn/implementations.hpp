// One function per operator of this backend; each adds the operator's variants.
#pragma once

#include <opmux/plugin.hpp>

namespace opmux::backends::onednn {

// Capabilities shared by all implementations: the element types for which oneDNN has fast code on
// this machine.
plugin::Caps float_caps();

void add_attention(plugin::Backend& backend);
void add_fused_moe(plugin::Backend& backend);
void add_linear(plugin::Backend& backend);
void add_linear_w8a8(plugin::Backend& backend);
void add_matmul(plugin::Backend& backend);

}  // namespace opmux::backends::onednn
