#include "base/system/thread_state.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cfenv>
#include <filesystem>

#include "base/system/process.hpp"

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

TEST(FloatControl, restores_rounding_and_says_so) {
  const FloatControl before;
  EXPECT_FALSE(before.restore());
  std::fesetround(FE_UPWARD);
  EXPECT_TRUE(before.restore());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(FloatControl, ignores_the_flags_of_exceptions) {
  std::feclearexcept(FE_ALL_EXCEPT);
  const FloatControl before;
  std::feraiseexcept(FE_INEXACT);
  EXPECT_FALSE(before.restore());
  EXPECT_NE(std::fetestexcept(FE_INEXACT), 0);
  std::fesetround(FE_UPWARD);
  EXPECT_TRUE(before.restore());
  EXPECT_NE(std::fetestexcept(FE_INEXACT), 0) << "the flags stay";
}

TEST(StateCheck, restores_and_names_what_was_changed) {
  const std::filesystem::path folder = std::filesystem::current_path();
  const StateCheck before(kAllStates);
  EXPECT_EQ(before.restore(), 0u);
  sigset_t all, now;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_EQ(before.restore(), kSignalMask | kFolder);
  EXPECT_EQ(std::filesystem::current_path(), folder);
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGUSR1), 0);
  EXPECT_EQ(names_of_states(kSignalMask | kFolder), "the signal mask, the working folder");
}

TEST(StateCheck, leaves_states_alone_that_it_was_not_asked_for) {
  const std::filesystem::path folder = std::filesystem::current_path();
  const StateCheck before(kFloatingPoint);
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_EQ(before.restore(), 0u);
  EXPECT_EQ(std::filesystem::current_path(), "/");
  std::filesystem::current_path(folder);
}

}  // namespace
}  // namespace opmux::base
