#include "operators/common/reference/shared.hpp"

namespace op = opmux::plugin;

OPMUX_PLUGIN_ENTRY(reference) {
  return op::answer(host, out, [] {
    op::Backend backend{"reference", OPMUX_KIND_REFERENCE};
    for (const op::Impl& impl : opmux::backends::reference::implementations()) backend.add(impl);
    return op::Plugin{"reference", OPMUX_BACKEND_VERSION}.add(backend);
  });
}
