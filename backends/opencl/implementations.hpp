// The operators of this backend, one per file, and their common declarations.
#pragma once

#include <opmux/plugin.hpp>

#include <string_view>

namespace opmux::backends::opencl {

using plugin::device_of, plugin::dtype_of;

void add_matmul(plugin::Backend& backend);
void add_rms_norm(plugin::Backend& backend);
void add_rotary_embedding(plugin::Backend& backend);
void add_silu_and_mul(plugin::Backend& backend);
void add_softmax(plugin::Backend& backend);

// An operator of this backend. Tensors named in `alike` must have the same dtype. Each row is
// computed alone and in a fixed order.
struct Operator {
  std::string_view name, signature;
  plugin::Impl::Reads alike;
  plugin::Caps caps = {};
};
plugin::Impl implementation(const Operator& op);

// The device functions (memory, copies, streams) of this backend.
const opmux_device_table& device_table();

}  // namespace opmux::backends::opencl
