#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/process.hpp"

namespace opmux::base {

/// An immutable value that readers share and writers replace as a whole. Thread-safe; a child
/// forked at any moment finds the old or the new value and free locks.
template <class T>
class Published {
 public:
  Published() : current_(new Pointer(std::make_shared<const T>())) {
    (void)process_number();  // counts forks from now on
  }
  ~Published() { delete current_.load(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  std::shared_ptr<const T> get() const {
    const std::scoped_lock lock(pointer_);
    return *current_.load(std::memory_order_acquire);
  }

  /// Lets `edit` change a copy and publishes it if `edit` returns true; returns the same. Writers
  /// wait for each other, readers do not wait for `edit`.
  template <class Edit>
  bool update(Edit&& edit) {
    const std::scoped_lock lock(writers_);
    auto next = std::make_shared<T>(*get());
    if (!std::forward<Edit>(edit)(*next)) return false;
    set(std::move(next));
    return true;
  }

 private:
  using Pointer = std::shared_ptr<const T>;

  void set(Pointer next) {
    const auto* node = new Pointer(std::move(next));
    {
      const std::scoped_lock lock(pointer_);
      node = current_.exchange(node, std::memory_order_acq_rel);
    }
    delete node;  // followed only under the lock
  }

  ForkMutex writers_;
  mutable ForkMutex pointer_;  ///< held while the pointer below is followed or moved
  /// One word: a shared_ptr itself is two, and a fork may come between them.
  std::atomic<const Pointer*> current_;
};

}  // namespace opmux::base
