#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/system/process.hpp"

namespace opmux::base {

/// A value behind a lock, for rare paths. If a process forks while another thread is inside with(),
/// the value may be inconsistent in the child. The child then starts with a new, empty value and
/// leaks the old one.
template <class T>
class ForkGuarded {
 public:
  template <class Use>
  decltype(auto) with(Use&& use) {
    mutex_.lock();
    const Turn turn(*this);
    return std::forward<Use>(use)(*value_);
  }
  /// The same without waiting: false, and `use` is not called, if another thread is inside.
  template <class Use>
  bool try_with(Use&& use) {
    if (!mutex_.try_lock()) return false;
    const Turn turn(*this);
    std::forward<Use>(use)(*value_);
    return true;
  }

 private:
  /// Constructed with the lock held.
  struct Turn {
    explicit Turn(ForkGuarded& owner) : guarded(owner) {
      if (guarded.changing_) (void)guarded.value_.release();
      if (guarded.value_ == nullptr) guarded.value_ = std::make_unique<T>();
      guarded.changing_ = true;
    }
    ~Turn() {
      guarded.changing_ = false;
      guarded.mutex_.unlock();
    }
    ForkGuarded& guarded;
  };

  ForkMutex mutex_;
  bool changing_ = false;
  std::unique_ptr<T> value_ = std::make_unique<T>();
};

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

  /// Keep the result while the value is in use; `for (... : *x.get())` drops it before the loop.
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
