#include "backends/opencl/implementations.hpp"

namespace opmux::backends::opencl {

plugin::Impl implementation(const Operator& op) {
  plugin::Impl impl{op.name, "kernel"};
  plugin::Caps caps = op.caps;
  // Capture safe because run() only enqueues commands and never waits.
  impl.signature(op.signature)
      .flags(OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT | OPMUX_IMPL_CAPTURE_SAFE)
      .caps(caps.dtypes({plugin::f32, plugin::f16, plugin::bf16}).device_type(OPMUX_DEVICE_OPENCL));
  return impl.same_dtype(op.alike);
}

}  // namespace opmux::backends::opencl
