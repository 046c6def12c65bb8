#include <opmux/plugin.hpp>

#include "backends/opencl/driver.hpp"
#include "backends/opencl/implementations.hpp"

namespace op = opmux::plugin;
namespace opencl = opmux::backends::opencl;

OPMUX_PLUGIN_ENTRY(opencl) {
  return op::answer(host, out, [] {
    // Driver threads do not survive a fork.
    op::Backend backend{"opencl", OPMUX_KIND_VENDOR, OPMUX_DEVICE_OPENCL};
    backend.vendor("khronos")
        .flags(OPMUX_BACKEND_FORK_LOST | OPMUX_BACKEND_STREAM)
        .device(&opencl::device_table())
        .available([](opmux_error* why) {
          const std::string& missing = opencl::Driver::get().missing();
          return missing.empty() ? OPMUX_OK : op::decline(why, "opencl.missing", missing);
        });
    opencl::add_matmul(backend);
    opencl::add_rms_norm(backend);
    opencl::add_rotary_embedding(backend);
    opencl::add_silu_and_mul(backend);
    opencl::add_softmax(backend);
    return op::Plugin{"opencl", OPMUX_BACKEND_VERSION}.add(backend).init(
        [](const opmux_host* told) { opencl::set_host(told); });
  });
}
