#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.h>
#include <opmux/opmux.hpp>

#include "plugin/discover/discovery.hpp"
#include "plugin/probe/probe.hpp"
#include "plugin/trust/checked_file.hpp"
#include "private_folder.hpp"
#include "runtime/core.hpp"

namespace opmux::plugin {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// Makes the system refuse new namespaces and Landlock to this process and its children.
bool take_layers_away() {
  const unsigned number = offsetof(seccomp_data, nr);
  constexpr unsigned short kEqual = BPF_JMP | BPF_JEQ | BPF_K, kAnswer = BPF_RET | BPF_K;
  sock_filter code[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, number},    {kEqual, 0, 1, SYS_unshare},
      {kAnswer, 0, 0, SECCOMP_RET_ERRNO | EPERM},  {kEqual, 0, 1, SYS_landlock_create_ruleset},
      {kAnswer, 0, 0, SECCOMP_RET_ERRNO | ENOSYS}, {kAnswer, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/// Runs a test in a forked process without layers of confinement; returns whether it passed.
template <class Test>
bool passes_without_layers(Test&& test) {
  const pid_t child = fork();
  if (child == 0) {
    const bool ready = take_layers_away();
    if (ready) test();
    std::cout.flush();
    _exit(ready && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ProbeResult probe_file(const std::string& path, Confinement confinement) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ProbeResult verdict = probe(probe_program(), {path, file}, confinement);
  close(file);
  return verdict;
}

const std::string kTwin = std::string(OPMUX_HARMLESS_TWINS) + "/nan.so";
const std::vector<std::string> kTakenAway{"mount_namespace", "ipc_namespace", "network_namespace",
                                          "landlock"};

TEST(ConfinementLayers, a_probe_names_the_layers_that_the_system_lacks) {
  EXPECT_TRUE(passes_without_layers([] {
    const ProbeResult verdict = probe_file(kTwin, Confinement::available);
    EXPECT_TRUE(verdict.ok()) << verdict.text;
    EXPECT_EQ(verdict.missing, kTakenAway);
  }));
}

TEST(ConfinementLayers, a_plugin_does_not_run_where_a_required_layer_is_missing) {
  EXPECT_TRUE(passes_without_layers([] {
    const std::string path = std::string(OPMUX_HOSTILE_PLUGINS) + "/segv_at_open.so";
    const ProbeResult verdict = probe_file(path, Confinement::all);
    EXPECT_EQ(verdict.code, "probe.unconfined") << "its constructor crashes";
    EXPECT_EQ(verdict.stage, "start");
    EXPECT_EQ(verdict.missing, kTakenAway);
  }));
}

TEST(ConfinementLayers, an_attack_without_the_other_layers_still_meets_the_filter) {
  EXPECT_TRUE(passes_without_layers([] {
    for (const char* name : {"join_group", "signal_through_pipe", "limit_parent",
                             "take_descriptors", "system_v_memory"}) {
      const std::string path = std::string(OPMUX_HOSTILE_PLUGINS) + "/" + name + "_at_open.so";
      EXPECT_EQ(probe_file(path, Confinement::available).code, "probe.forbidden") << name;
    }
    // The host is undumpable, and the probe has no capabilities.
    const std::string path = std::string(OPMUX_HOSTILE_PLUGINS) + "/read_environment_at_open.so";
    EXPECT_THAT(probe_file(path, Confinement::available).text, testing::HasSubstr("status 40"));
  }));
}

class RequiredConfinementTest : public testing::Test {
 protected:
  RequiredConfinementTest() {
    fs::create_directories(folder_.at("plugins"));
    fs::copy_file(kTwin, folder_.at("plugins/nan.so"));
  }
  /// The code of the plugin in a new runtime.
  std::string code_with(bool required) {
    heard_.clear();
    Options options;
    options.backends = false;
    options.environment = {{std::string("OPMUX_STATE_DIR"), folder_.at("state")}};
    options.plugins.folders = {folder_.at("plugins")};
    options.plugins.require_confinement = required;
    options.sink = [this](const Event& event) {
      if (event.code == "probe.unconfined") heard_.emplace_back(event.text);
    };
    Runtime runtime = Runtime::create(options).value();
    return runtime.plugins().list().back().code;
  }

  PrivateFolder folder_;
  std::vector<std::string> heard_;
};

TEST_F(RequiredConfinementTest, refuses_a_plugin_that_was_accepted_without_it) {
  EXPECT_TRUE(passes_without_layers([&] {
    EXPECT_EQ(code_with(false), "");
    EXPECT_THAT(heard_, ElementsAre("the system lacks these layers of the confinement in which "
                                    "plugins are probed: mount_namespace, ipc_namespace, "
                                    "network_namespace, landlock"));
    EXPECT_EQ(code_with(true), "probe.unconfined");
    EXPECT_EQ(code_with(false), "") << "the refusal is not stored";
  }));
}

TEST_F(RequiredConfinementTest, is_a_flag_of_the_c_api) {
  EXPECT_TRUE(passes_without_layers([&] {
    const std::string path = folder_.at("plugins");
    const opmux_str folder{path.data(), path.size()};
    opmux_plugin_options plugins{};
    plugins.struct_size = sizeof(plugins);
    plugins.flags = OPMUX_PLUGINS_REQUIRE_CONFINEMENT;
    plugins.folders = {&folder, 1};
    opmux_options options{};
    options.struct_size = sizeof(options);
    options.flags = OPMUX_OPTION_NO_BACKENDS;
    options.plugins = &plugins;
    const std::string state = folder_.at("state");
    const opmux_variable variable{OPMUX_STR("OPMUX_STATE_DIR"), {state.data(), state.size()}};
    options.environment = &variable;
    options.environment_count = 1;
    opmux_runtime* runtime = nullptr;
    ASSERT_EQ(opmux_runtime_create(&options, &runtime, nullptr), OPMUX_OK);
    std::string list(65536, '\0');
    size_t size = 0;
    EXPECT_EQ(opmux_list_plugins(runtime, list.data(), list.size(), &size, nullptr), OPMUX_OK);
    EXPECT_THAT(list, testing::HasSubstr("probe.unconfined"));
    opmux_runtime_destroy(runtime);
  }));
}

/// The output of `opmux plugin list` for the folder of the test.
std::string printed_list(const PrivateFolder& folder, const std::string& flag) {
  const std::string command = "OPMUX_STATE_DIR=" + folder.at("state") + " " + OPMUX_COMMAND +
                              " plugin list --folder " + folder.at("plugins") + flag;
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  for (char part[512]; pipe != nullptr && fgets(part, sizeof part, pipe) != nullptr;) text += part;
  if (pipe != nullptr) pclose(pipe);
  return text;
}

TEST_F(RequiredConfinementTest, is_a_flag_of_the_command) {
  EXPECT_TRUE(passes_without_layers([&] {
    EXPECT_THAT(printed_list(folder_, ""), testing::HasSubstr("loaded   " + folder_.at("plugins")));
    const std::string refused = printed_list(folder_, " --require-confinement");
    EXPECT_THAT(refused, testing::HasSubstr("refused  " + folder_.at("plugins")));
    EXPECT_THAT(refused, testing::HasSubstr("probe.unconfined"));
  }));
}

TEST_F(RequiredConfinementTest, is_required_by_the_trust_file_whatever_the_program_says) {
  EXPECT_TRUE(passes_without_layers([&] {
    const base::TrustFile place{folder_.write("trust.conf", "require_confinement = yes\n"),
                                geteuid()};
    Options options;
    options.backends = false;
    options.environment = {{std::string("OPMUX_STATE_DIR"), folder_.at("state")}};
    options.plugins.folders = {folder_.at("plugins")};
    options.plugins.probe = false;
    const auto core = runtime::Core::create(options, place).value();
    EXPECT_EQ(core->plugins().report().back().code, "probe.unconfined");
    std::filesystem::remove(place.path);
    const auto free = runtime::Core::create(options, place).value();
    EXPECT_EQ(free->plugins().report().back().code, "");
  }));
}

TEST_F(RequiredConfinementTest, accepts_a_plugin_where_the_system_has_every_layer) {
  const ProbeResult verdict = probe_file(kTwin, Confinement::all);
  if (verdict.code == "probe.unconfined") GTEST_SKIP() << verdict.text;
  EXPECT_EQ(code_with(true), "");
  EXPECT_THAT(heard_, IsEmpty());
}

TEST(ConfinementLayers, the_backends_of_the_installation_pass_the_probe) {
  // With more threads OpenBLAS starts them when it is opened, which is refused.
  setenv("OMP_NUM_THREADS", "1", 1);
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(default_folder())) {
    if (entry.path().extension() != ".so") continue;
    const CheckedFile file = check_file(entry.path(), {}).value();
    const ProbeResult verdict = probe(probe_program(), library_file(file));
    EXPECT_TRUE(verdict.ok()) << entry.path() << ": " << verdict.code << ": " << verdict.text;
    ++count;
  }
  unsetenv("OMP_NUM_THREADS");
  EXPECT_GE(count, 1u);
}

}  // namespace
}  // namespace opmux::plugin
