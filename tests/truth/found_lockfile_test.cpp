#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(FoundLockfile, truth_a_lockfile_beside_the_policy_says_that_it_sets_mode_static) {
  const TemporaryFolder folder;
  write_file(folder.at("policy.yaml"), "opmux: 1\n");
  std::vector<std::string> told;
  const auto create = [&](const char* mode) {
    told.clear();
    Options options = bare({{"OPMUX_STATE_DIR", folder.at("state")}});
    options.sources.config = folder.at("policy.yaml");
    options.sources.mode = mode;
    options.sink = [&](const Event& event) {
      if (event.code == "mode.static") told.push_back(event.text);
    };
    return Runtime::create(std::move(options)).value();
  };
  EXPECT_THAT(setting(create(""), "mode"), "hot_reload <- built-in, auto");
  EXPECT_TRUE(told.empty());
  ASSERT_TRUE(create("").lockfile().current().write(folder.at("opmux.lock")).ok());
  const Runtime runtime = create("");
  EXPECT_TRUE(runtime.lockfile().frozen());
  EXPECT_EQ(setting(runtime, "mode"),
            "static <- built-in, auto, because of " + folder.at("opmux.lock"));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], AllOf(HasSubstr(folder.at("opmux.lock")), HasSubstr("sets mode static"),
                             HasSubstr(folder.at("policy.yaml"))));
  EXPECT_EQ(setting(create("static"), "mode"), "static <- Options (code)");
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(setting(create("config"), "mode"), "config <- Options (code)");
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace opmux::test
