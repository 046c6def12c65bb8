// Divides the workspace of a call into parts.
#pragma once

#include <cstdint>

namespace opmux::backends::onednn {

// Allocates parts aligned to 64 bytes. With a null workspace it only counts their bytes.
class Parts {
 public:
  explicit Parts(void* workspace) : first_(reinterpret_cast<uintptr_t>(workspace)) {}
  template <class T>
  T* take(int64_t count) {
    T* part = reinterpret_cast<T*>(first_ + used_);
    used_ += (static_cast<uint64_t>(count) * sizeof(T) + 63) / 64 * 64;
    return part;
  }
  uint64_t used() const { return used_; }

 private:
  uintptr_t first_;
  uint64_t used_ = 0;
};

}  // namespace opmux::backends::onednn
