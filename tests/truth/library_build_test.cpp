#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

TEST(LibraryBuild, truth_a_lockfile_pins_the_build_of_the_library_by_the_reference) {
  Stage stage;
  Rows t;
  ASSERT_TRUE(stage.runtime.op("softmax").value().decide(t.y, t.x));
  Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), 1u);
  EXPECT_EQ(lock.choices[0].implementation, "softmax/reference.scalar");
  const std::string build = lock.choices[0].build_id;
  EXPECT_GE(build.size(), 16u) << build;
  EXPECT_TRUE(stage.runtime.lockfile().check(lock).ok());
  for (const char* other : {"0123456789abcdef", ""}) {
    lock.choices[0].build_id = other;
    const Status misfit = stage.runtime.lockfile().check(lock);
    EXPECT_EQ(misfit.reason(), "lock.misfit");
    EXPECT_THAT(std::string(misfit.message()),
                HasSubstr("softmax/reference.scalar comes from another build: " + build));
    EXPECT_EQ(stage.runtime.lockfile().freeze(lock).reason(), "lock.misfit");
    EXPECT_FALSE(stage.runtime.lockfile().frozen());
  }
}

}  // namespace
}  // namespace opmux::test
