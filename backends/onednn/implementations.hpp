// One function per operator of this backend; each adds its variants.
#pragma once

#include <opmux/plugin.hpp>

namespace opmux::backends::onednn {

// Capabilities that all have in common: element types that this machine's oneDNN has fast code for.
plugin::Caps float_caps();

void add_attention(plugin::Backend& backend);
void add_fused_moe(plugin::Backend& backend);
void add_linear(plugin::Backend& backend);
void add_linear_w8a8(plugin::Backend& backend);
void add_matmul(plugin::Backend& backend);

}  // namespace opmux::backends::onednn
