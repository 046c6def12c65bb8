// A plugin that lets an exception out of its query function.
#include <stdexcept>

#include <opmux/abi.h>

extern "C" {
OPMUX_PLUGIN_ENTRY(throwing) {
  (void)host;
  (void)out;
  throw std::runtime_error("not in the mood");
}
}
