#include "plugin/probe/undumpable.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace opmux::plugin {
namespace {

int dumpable_now() { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }

TEST(Undumpable, lasts_until_the_last_object_and_then_restores_the_setting) {
  ASSERT_EQ(dumpable_now(), 1);
  {
    const Undumpable first;
    EXPECT_EQ(dumpable_now(), 0);
    {
      const Undumpable second;
    }
    EXPECT_EQ(dumpable_now(), 0) << "the first object still exists";
  }
  EXPECT_EQ(dumpable_now(), 1);
}

TEST(Undumpable, leaves_an_undumpable_process_as_it_is) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  {
    const Undumpable object;
  }
  EXPECT_EQ(dumpable_now(), 0);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

TEST(Undumpable, a_forked_child_is_dumpable_at_once_and_can_use_it) {
  const Undumpable object;
  const pid_t child = fork();
  if (child == 0) {
    const bool restored = dumpable_now() == 1;
    bool hidden = false;
    {
      const Undumpable again;
      hidden = dumpable_now() == 0;
    }
    _exit(restored && hidden && dumpable_now() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(dumpable_now(), 0) << "the parent still holds its object";
}

}  // namespace
}  // namespace opmux::plugin
