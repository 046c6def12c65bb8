#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Smart pointers for the private members of public classes. They behave as std::unique_ptr and
/// std::shared_ptr do, and convert from them, but do not need <memory>, which costs every source
/// that includes opmux a third of a second. Internal: programs do not use them by name.
namespace opmux::detail {

/// Owns an object as std::unique_ptr does. T may be incomplete where a class with such a member is
/// defined, if the destructor of that class is defined elsewhere.
template <class T>
class Owned {
 public:
  Owned() noexcept = default;
  explicit Owned(T* adopted) noexcept : object_(adopted) {}
  /// Takes the object over from a std::unique_ptr.
  template <class Pointer>
    requires requires(Pointer& pointer) {
      typename Pointer::deleter_type;
      { pointer.release() } -> std::convertible_to<T*>;
    }
  Owned(Pointer&& pointer) noexcept  // NOLINT(*-explicit-*)
      : object_(pointer.release()) {
    static_assert(!std::is_lvalue_reference_v<Pointer>, "move the pointer");
  }
  Owned(Owned&& other) noexcept : object_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    reset(other.release());
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  void reset(T* adopted = nullptr) noexcept {
    static_assert(std::is_destructible_v<T>, "T must be complete here");
    T* const before = std::exchange(object_, adopted);
    if (before != adopted) delete before;
  }
  T* release() noexcept { return std::exchange(object_, nullptr); }
  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Owned& pointer, std::nullptr_t) noexcept {
    return pointer.object_ == nullptr;
  }

 private:
  T* object_ = nullptr;
};

/// Shares an object that a std::shared_ptr owns. Copies share one std::shared_ptr, which is
/// destroyed with the last of them. Counts are atomic, so copies may live on different threads.
template <class T>
class Shared {
 public:
  Shared() noexcept = default;
  Shared(std::nullptr_t) noexcept {}  // NOLINT(*-explicit-*)
  /// Keeps a copy of a std::shared_ptr.
  template <class Pointer>
    requires requires(const Pointer& pointer) {
      pointer.use_count();
      { pointer.get() } -> std::convertible_to<T*>;
    }
  Shared(Pointer pointer) : object_(pointer.get()) {  // NOLINT(*-explicit-*)
    if (object_ != nullptr) holder_ = new HolderOf<Pointer>(std::move(pointer));
  }
  Shared(const Shared& other) noexcept : object_(other.object_), holder_(other.holder_) {
    if (holder_ != nullptr) __atomic_fetch_add(&holder_->owners, 1, __ATOMIC_RELAXED);
  }
  Shared(Shared&& other) noexcept { swap(other); }
  Shared& operator=(Shared other) noexcept {
    swap(other);
    return *this;
  }
  ~Shared() {
    if (holder_ != nullptr && __atomic_sub_fetch(&holder_->owners, 1, __ATOMIC_ACQ_REL) == 0) {
      holder_->destroy(holder_);
    }
  }

  void swap(Shared& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(holder_, other.holder_);
  }
  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Shared& pointer, std::nullptr_t) noexcept {
    return pointer.object_ == nullptr;
  }

 private:
  struct Holder {
    void (*destroy)(Holder*);
    uint64_t owners = 1;
  };
  template <class Pointer>
  struct HolderOf : Holder {
    explicit HolderOf(Pointer kept)
        : Holder{[](Holder* own) { delete static_cast<HolderOf*>(own); }},
          pointer(std::move(kept)) {}
    Pointer pointer;
  };

  T* object_ = nullptr;
  Holder* holder_ = nullptr;
};

}  // namespace opmux::detail
