#pragma once

#include <cstdint>

namespace opmux::plugin {

/// Makes this process undumpable while at least one object exists, so that a plugin on trial, which
/// runs as the same user, can neither trace this process nor open its memory, descriptors and
/// environment in /proc. The last destructor restores the earlier setting. A child that another
/// thread forks meanwhile gets the earlier setting at once. Until then the process writes no core
/// file, and debuggers of the same user cannot attach. Thread-safe.
class Undumpable {
 public:
  Undumpable();
  ~Undumpable();
  Undumpable(const Undumpable&) = delete;
  Undumpable& operator=(const Undumpable&) = delete;

 private:
  uint64_t process_;  ///< the process that counted this object
};

}  // namespace opmux::plugin
