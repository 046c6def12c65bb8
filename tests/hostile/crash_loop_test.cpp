#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "private_folder.hpp"

namespace opmux {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A function that crashes in the host and not on trial, and how the next start reports it.
struct CrashingPhase {
  std::string stage;  ///< in the name of the plugin: "open"
  std::string phase;  ///< in the quarantine: "constructor"
  std::string place;  ///< part of the sentence that explains the quarantine
};

std::ostream& operator<<(std::ostream& out, const CrashingPhase& one) { return out << one.phase; }

/// The output and the wait status of a program.
struct Finished {
  std::string output;
  int status = -1;
};

Finished finish(const std::string& program, const std::vector<std::string>& words,
                const std::vector<std::string>& environment = {}) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    std::vector<char*> arguments{const_cast<char*>(program.c_str())}, variables;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& one : environment) variables.push_back(const_cast<char*>(one.c_str()));
    // Otherwise a sanitizer turns the signal of a crash into an exit status.
    variables.push_back(const_cast<char*>("ASAN_OPTIONS=handle_segv=0"));
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(ends[1]);
  Finished result;
  char text[4096];
  for (ssize_t got = 0; (got = read(ends[0], text, sizeof(text))) > 0;) {
    result.output.append(text, static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, &result.status, 0);
  return result;
}

/// Starts of a service with a plugin that crashes or hangs and a plugin that does not.
class StartsOfService : public testing::Test {
 protected:
  void put(const std::string& name) {
    culprit_ = name;
    fs::create_directories(folder_.at("plugins"));
    const std::string file = name + ".so";
    fs::copy_file(fs::path(OPMUX_HOSTILE_PLUGINS) / file, folder_.at("plugins/" + file));
    fs::copy_file(fs::path(OPMUX_HARMLESS_TWINS) / file, folder_.at("plugins/innocent.so"));
  }
  Finished start(const std::string& how) const {
    return finish(OPMUX_LOOP_SERVER, {folder_.at("state"), folder_.at("plugins"), how});
  }
  std::string innocent() const { return "linear/twin_" + culprit_ + ".v1"; }

  PrivateFolder folder_;
  std::string culprit_;
};

class CrashLoop : public StartsOfService,
                  public testing::WithParamInterface<std::tuple<CrashingPhase, std::string>> {
 protected:
  /// The id that is quarantined after a crash in this phase.
  std::string blamed() const {
    const std::string& stage = std::get<0>(GetParam()).stage;
    if (stage == "open" || stage == "query" || stage == "init") {
      return "plugin:" + culprit_ + ".so";
    }
    const std::string provider = "hostile_" + culprit_;
    return stage == "is_available" ? "backend:" + provider : "linear/" + provider + ".v1";
  }
};

TEST_P(CrashLoop, ends_at_the_second_start_and_blames_no_other) {
  const auto& [phase, how] = GetParam();
  put("segv_in_host_at_" + phase.stage);
  const Finished first = start(how);
  ASSERT_TRUE(WIFSIGNALED(first.status) && WTERMSIG(first.status) == SIGSEGV) << first.output;
  for (const char* which : {"second", "third"}) {
    const Finished next = start(how);
    ASSERT_EQ(next.status, 0) << which << " start: " << next.output;
    EXPECT_THAT(next.output, HasSubstr("ran\t" + innocent() + "\n")) << which << " start";
    EXPECT_THAT(next.output, HasSubstr(base::concat("quarantined\t", blamed(), "\tSIGSEGV\t",
                                                    phase.phase, "\there\nsuspected\t0\n")));
    EXPECT_EQ(next.output.find("\nquarantined\t"), next.output.rfind("\nquarantined\t"))
        << "innocents: " << next.output;
    EXPECT_THAT(next.output,
                HasSubstr("health.quarantined\ta process ended " + phase.place + " by SIGSEGV"));
  }
}

TEST_P(CrashLoop, is_shown_by_the_command) {
  const auto& [phase, how] = GetParam();
  put("segv_in_host_at_" + phase.stage);
  ASSERT_TRUE(WIFSIGNALED(start(how).status));
  const Finished listed =
      finish(OPMUX_COMMAND, {"quarantine", "list"}, {"OPMUX_STATE_DIR=" + folder_.at("state")});
  ASSERT_TRUE(WIFEXITED(listed.status));
  EXPECT_EQ(WEXITSTATUS(listed.status), 1) << "something is quarantined";
  EXPECT_THAT(listed.output, HasSubstr(blamed()));
  EXPECT_THAT(listed.output,
              HasSubstr(phase.phase == "run" ? "SIGSEGV  since" : "in " + phase.phase + " since"));
  const Finished cleared = finish(OPMUX_COMMAND, {"quarantine", "clear", blamed()},
                                  {"OPMUX_STATE_DIR=" + folder_.at("state")});
  EXPECT_EQ(cleared.status, 0) << cleared.output;
  EXPECT_TRUE(WIFSIGNALED(start(how).status)) << "cleared, it is used again";
}

const std::vector<CrashingPhase> kCrashingPhases{
    {"open", "constructor", "in its constructor"},
    {"query", "query", "in its query function"},
    {"init", "init", "in its init function"},
    {"is_available", "is_available", "in its is_available function"},
    {"verify", "verify", "in its verify function"},
    {"create", "create", "in its create function"},
    {"load", "load", "in its load function"},
    {"plan", "plan", "in its plan function"},
    {"run", "run", "inside it"}};

INSTANTIATE_TEST_SUITE_P(phases, CrashLoop,
                         testing::Combine(testing::ValuesIn(kCrashingPhases),
                                          testing::Values("tried", "at_once")),
                         [](const auto& one) {
                           return std::get<0>(one.param).phase + "_of_a_plugin_" +
                                  std::get<1>(one.param);
                         });

TEST_F(StartsOfService, a_harmless_twin_is_not_quarantined) {
  put("segv_in_host_at_run");
  fs::remove(folder_.at("plugins/segv_in_host_at_run.so"));
  for (int i = 0; i < 2; ++i) {
    const Finished served = start("tried");
    EXPECT_EQ(served.status, 0);
    EXPECT_THAT(served.output, AllOf(HasSubstr("ran\t" + innocent() + "\n"),
                                     HasSubstr("suspected\t0\n"), Not(HasSubstr("quarantined"))));
  }
}

TEST_F(StartsOfService, an_exit_in_a_constructor_counts_as_its_crash) {
  put("exit_in_host_at_open");
  ASSERT_EQ(start("at_once").output, "") << "the first start ends without an answer";
  const Finished next = start("at_once");
  EXPECT_THAT(next.output, HasSubstr("ran\t" + innocent() + "\n"));
  EXPECT_THAT(next.output,
              HasSubstr("quarantined\tplugin:exit_in_host_at_open.so\texit\tconstructor\there\n"));
}

/// Takes as long as the deadline, 30 s, so only the full form runs it.
TEST_F(StartsOfService, DISABLED_a_hang_in_is_available_ends_at_the_deadline) {
  put("hang_in_host_at_is_available");
  const auto begin = std::chrono::steady_clock::now();
  const Finished served = start("tried");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(served.status, 0);
  EXPECT_THAT(served.output, HasSubstr("ran\t" + innocent() + "\n"));
  EXPECT_THAT(served.output, HasSubstr("backend.unavailable\tits is_available function did not "
                                       "return within 30000 ms"));
  EXPECT_LT(took.count(), 35);
}

}  // namespace
}  // namespace opmux
