#include "base/system/process.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

namespace opmux::base {
namespace {

TEST(ThreadStateGuard, restores_the_rounding_mode) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  {
    const ThreadStateGuard guard;
    std::fesetround(FE_UPWARD);
  }
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(ThreadStateGuard, restores_the_signal_mask) {
  sigset_t now;
  {
    const ThreadStateGuard guard;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGUSR1), 0);
}

}  // namespace
}  // namespace opmux::base
