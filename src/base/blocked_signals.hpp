#pragma once

#include <pthread.h>
#include <signal.h>

namespace opmux::base {

/// Signals of the program are for its own threads: while one of these lives, none is taken here,
/// nor by threads that are started meanwhile. Faults are: blocked, they end the process without a
/// word to its handlers.
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
