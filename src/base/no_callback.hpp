#pragma once

#include <string>
#include <utility>

#include <opmux/status.hpp>

#include "base/text.hpp"

namespace opmux::base {

/// Marks that the calling thread runs a function that must not call the runtime, because the
/// runtime waits for its answer, possibly with locks held. Functions of the runtime that could wait
/// for that answer return refuse_callback() while such a guard exists on their thread.
class NoCallbackGuard {
 public:
  /// `what` names the function: "is_available of backend acme".
  explicit NoCallbackGuard(std::string what)
      : what_(std::move(what)), before_(std::exchange(current, &what_)) {}
  ~NoCallbackGuard() { current = before_; }
  NoCallbackGuard(const NoCallbackGuard&) = delete;
  NoCallbackGuard& operator=(const NoCallbackGuard&) = delete;

  /// The name that the innermost guard of the calling thread was given; null if there is none.
  static const std::string* active() { return current; }

 private:
  static inline thread_local const std::string* current = nullptr;

  const std::string what_;
  const std::string* const before_;
};

/// "runtime.callback" inside a NoCallbackGuard, otherwise ok.
inline Status refuse_callback() {
  const std::string* const what = NoCallbackGuard::active();
  if (what == nullptr) return {};
  return {Code::failed, "runtime.callback",
          concat(*what,
                 " called the runtime, which waits for its answer; it must decide without the "
                 "runtime")};
}

}  // namespace opmux::base
