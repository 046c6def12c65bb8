#include "backends/openblas/implementations.hpp"

namespace op = opmux::plugin;
namespace openblas = opmux::backends::openblas;

OPMUX_PLUGIN_ENTRY(openblas) {
  return op::answer(host, out, [] {
    op::Backend backend{"openblas", OPMUX_KIND_VENDOR};
    backend.vendor("openblas")
        .add(openblas::matmul())
        .add(openblas::linear())
        .add(openblas::attention());
    return op::Plugin{"openblas", OPMUX_BACKEND_VERSION}.add(backend);
  });
}
