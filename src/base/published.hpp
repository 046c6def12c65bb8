#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/process.hpp"

namespace opmux::base {

/// An immutable value that readers share and writers replace as a whole. Thread-safe. A child that
/// is forked at any moment finds either the old or the new value, and free locks.
template <class T>
class Published {
 public:
  Published() : current_(new Pointer(std::make_shared<const T>())) {
    (void)process_number();  // make sure that forks are counted
  }
  ~Published() { delete current_.load(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  std::shared_ptr<const T> get() const {
    const std::scoped_lock lock(pointer_);
    return *current_.load(std::memory_order_acquire);
  }

  /// Calls `edit` on a copy and publishes the copy if `edit` returns true. Returns the result of
  /// `edit`. Writers are serialized; readers do not wait for `edit`.
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
    delete node;  // safe, because readers dereference it only under the lock
  }

  ForkMutex writers_;
  mutable ForkMutex pointer_;  ///< held while `current_` is dereferenced or replaced
  /// A pointer to the shared_ptr, because a shared_ptr has two words and a fork may happen between
  /// the two stores.
  std::atomic<const Pointer*> current_;
};

}  // namespace opmux::base
