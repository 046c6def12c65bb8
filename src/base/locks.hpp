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
    std::unique_lock lock(mutex_);
    const Turn turn(*this, lock);
    return std::forward<Use>(use)(*value_);
  }
  /// The same without waiting: false, and `use` is not called, if another thread is inside.
  template <class Use>
  bool try_with(Use&& use) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    const Turn turn(*this, lock);
    std::forward<Use>(use)(*value_);
    return true;
  }

 private:
  /// Constructed with the lock held; takes it over, unless there is no memory for a new value.
  struct Turn {
    Turn(ForkGuarded& owner, std::unique_lock<ForkMutex>& lock) : guarded(owner) {
      if (guarded.changing_) (void)guarded.value_.release();
      if (guarded.value_ == nullptr) guarded.value_ = std::make_unique<T>();
      guarded.changing_ = true;
      (void)lock.release();
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
    return update(std::forward<Edit>(edit), [](Next& next) { next.exchange(); });
  }

  class Next;
  /// The same, but calls `commit(next)` instead of publishing the copy. It must call
  /// next.exchange(), and may call it a second time to undo the change.
  template <class Edit, class Commit>
  bool update(Edit&& edit, Commit&& commit) {
    const std::scoped_lock lock(writers_);
    auto edited = std::make_shared<T>(*get());
    if (!std::forward<Edit>(edit)(*edited)) return false;
    Next next(*this, std::move(edited));
    std::forward<Commit>(commit)(next);
    return true;
  }

  /// Calls `use` while no update is in progress.
  template <class Use>
  void between_updates(Use&& use) {
    const std::scoped_lock lock(writers_);
    std::forward<Use>(use)();
  }

  /// A value that takes the place of the current one without further allocations.
  class Next {
   public:
    Next(Published& owner, std::shared_ptr<const T> value)
        : owner_(owner), node_(new Pointer(std::move(value))) {}
    ~Next() { delete node_; }
    Next(const Next&) = delete;
    Next& operator=(const Next&) = delete;

    /// Publishes the value and keeps the one before, or the reverse.
    void exchange() noexcept {
      const std::scoped_lock lock(owner_.pointer_);
      node_ = owner_.current_.exchange(node_, std::memory_order_acq_rel);
    }

   private:
    Published& owner_;
    const std::shared_ptr<const T>* node_;
  };

 private:
  using Pointer = std::shared_ptr<const T>;

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
