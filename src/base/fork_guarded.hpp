#pragma once

#include <memory>
#include <utility>

#include "base/process.hpp"

namespace opmux::base {

/// A value behind a lock, for rare paths. If a process forks while another thread is inside with(),
/// the value may be inconsistent in the child. The child then starts with a new, empty value and
/// leaks the old one.
template <class T>
class ForkGuarded {
 public:
  template <class Use>
  decltype(auto) with(Use&& use) {
    const Turn turn(*this);
    return std::forward<Use>(use)(*value_);
  }

 private:
  struct Turn {
    explicit Turn(ForkGuarded& owner) : guarded(owner) {
      guarded.mutex_.lock();
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

}  // namespace opmux::base
