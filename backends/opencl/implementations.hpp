// The operators of this backend, one per file, and what they promise.
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

// An operator of this backend. Tensors that are named in `alike` have one dtype. A row is always
// computed alone and in one order.
struct Operator {
  std::string_view name, signature;
  plugin::Impl::Reads alike;
  plugin::Caps caps = {};
};
plugin::Impl implementation(const Operator& op);

// How memory and queues of OpenCL are reached.
const opmux_device_table& device_table();

}  // namespace opmux::backends::opencl
