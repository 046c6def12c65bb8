#include "base/thread_state.hpp"

#include <pthread.h>

namespace opmux::base {

ThreadStateGuard::ThreadStateGuard() {
  std::fegetenv(&floating_point_);
  pthread_sigmask(SIG_SETMASK, nullptr, &signals_);
}

ThreadStateGuard::~ThreadStateGuard() {
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  std::fesetenv(&floating_point_);
}

}  // namespace opmux::base
