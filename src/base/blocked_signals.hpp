#pragma once

#include <pthread.h>
#include <signal.h>

namespace opmux::base {

/// Blocks signals in the calling thread, and in threads that it starts meanwhile, because the
/// program's signal handlers expect to run on the program's threads. Fault signals stay unblocked:
/// a blocked fault would kill the process without calling its handler.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace opmux::base
