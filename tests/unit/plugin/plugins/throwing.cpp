// A plugin whose query function throws.
#include <stdexcept>

#include <opmux/abi.h>

extern "C" {
OPMUX_PLUGIN_ENTRY(throwing) {
  (void)host;
  (void)out;
  throw std::runtime_error("not in the mood");
}
}
