#pragma once

#include <memory>
#include <utility>

#include "base/process.hpp"

namespace opmux::base {

/// A value behind a lock for rare paths. A child forked while some thread was changing the value
/// cannot trust it: it starts with a new one, and the old one is left as it is.
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
