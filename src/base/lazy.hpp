#pragma once

#include <atomic>
#include <memory>

namespace opmux::base {

/// An object that is created on first use and never destroyed. Unlike a static local it has no lock
/// that a forked child could find held: threads that race each create an object, and all but one
/// are deleted.
template <class T>
class Lazy {
 public:
  constexpr Lazy() = default;

  template <class Make>
  T& get(Make&& make) {
    T* present = value_.load(std::memory_order_acquire);
    if (present != nullptr) return *present;
    std::unique_ptr<T> made = make();
    if (value_.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel)) {
      return *made.release();
    }
    return *present;
  }
  T& get() {
    return get([] { return std::make_unique<T>(); });
  }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace opmux::base
