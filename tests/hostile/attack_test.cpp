#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "plugin/probe/probe.hpp"
#include "private_folder.hpp"
#include "probe/process_state.hpp"

namespace opmux::plugin {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

/// The expected probe result of a plugin that attacks the host or the system in its constructor.
struct Attack {
  std::string name, code;
  std::string text = {};  ///< part of the message
};

std::ostream& operator<<(std::ostream& out, const Attack& attack) { return out << attack.name; }

Attack forbidden_attack(const std::string& name, const std::string& call) {
  return {name, "probe.forbidden", "it called " + call + " in open"};
}
/// An attack that the system answers with an error; see plugins/outcome.h.
Attack failing_attack(const std::string& name) { return {name, "probe.exit", "status 40"}; }

std::vector<Attack> attacks() {
  return {
      forbidden_attack("join_group", "setpgid"),
      forbidden_attack("leave_session", "setsid"),
      forbidden_attack("signal_through_pipe", "fcntl"),
      forbidden_attack("async_flag", "fcntl"),
      forbidden_attack("async_control", "ioctl"),
      failing_attack("overwrite_memory"),
      failing_attack("read_environment"),
      failing_attack("open_descriptors"),
      forbidden_attack("take_descriptors", "pidfd_open"),
      forbidden_attack("limit_parent", "prlimit64"),
      forbidden_attack("slow_parent", "setpriority"),
      forbidden_attack("slow_user", "setpriority"),
      failing_attack("bind_parent"),
      failing_attack("sacrifice_parent"),
      forbidden_attack("trace_parent", "ptrace"),
      forbidden_attack("copy_memory", "process_vm_readv"),
      {"stop", "probe.hang"},
      {"forge_report", "probe.forged"},
      failing_attack("fill_folders"),
      failing_attack("fill_private_folder"),
      failing_attack("rewrite_file"),
      failing_attack("use_given_file"),
      {"many_threads", "probe.threads", "more than 1024 threads"},
      {"shared_memory", "probe.memory"},
      {"shared_memory_at_once", "probe.memory"},
      failing_attack("memory_file"),
      forbidden_attack("system_v_memory", "shmget"),
      forbidden_attack("message_queue", "mq_open"),
      forbidden_attack("new_mount", "fsopen"),
      forbidden_attack("new_kernel", "kexec_file_load"),
      forbidden_attack("keyring", "keyctl"),
      forbidden_attack("counters", "perf_event_open"),
      forbidden_attack("kernel_program", "bpf"),
      forbidden_attack("other_socket", "socket"),
  };
}

char canary[] = "the memory of the host";

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A host with a file, a folder, a socket and memory that the attacks aim at.
class AttackTest : public testing::TestWithParam<Attack> {
 protected:
  void SetUp() override {
    file_ = folder_.write("outside/file", "contents");
    fs::create_directories(folder_.at("temporary"));
    setenv("TMPDIR", folder_.at("temporary").c_str(), 1);
    setenv("OMP_HOSTILE_TARGET", target().c_str(), 1);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets_), 0);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    unsetenv("OMP_HOSTILE_TARGET");
    for (const int one : sockets_) close(one);
  }

  std::string target() const {
    const std::string& name = GetParam().name;
    if (name == "fill_folders") return folder_.at("outside");
    if (name == "rewrite_file") return file_;
    char address[32];
    snprintf(address, sizeof(address), "%lx", reinterpret_cast<unsigned long>(&canary));
    return address;
  }

  ProbeResult try_in(const std::string& folder) {
    const std::string path = folder + "/" + GetParam().name + "_at_open.so";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ProbeResult verdict = probe(probe_program(), {path, file});
    EXPECT_EQ(lseek(file, 0, SEEK_CUR), 0) << "the position of the checked file";
    close(file);
    return verdict;
  }

  /// Everything that an attack could change and that probe::look() does not cover, as text.
  std::vector<std::string> facts() const {
    std::vector<std::string> all{canary, text_of_file("/proc/self/oom_score_adj"),
                                 text_of_file(file_)};
    cpu_set_t processors;
    sched_getaffinity(0, sizeof(processors), &processors);
    char byte = 0;
    struct stat file{};
    stat(file_.c_str(), &file);
    all.push_back(base::concat(
        "processors ", CPU_COUNT(&processors), ", priority ", getpriority(PRIO_PROCESS, 0),
        ", dumpable ", prctl(PR_GET_DUMPABLE), ", group ", getpgid(0), ", session ", getsid(0),
        ", received ", recv(sockets_[0], &byte, 1, 0), " ", recv(sockets_[1], &byte, 1, 0),
        ", file ", file.st_mode, " ", file.st_mtim.tv_nsec, " ", file.st_nlink));
    siginfo_t child{};
    all.push_back(waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 ? "a child" : "");
    for (const char* place : {"/tmp", "/var/tmp", "/run", "/dev/shm"}) {
      for (int i = 0; i < 5; ++i) {
        const std::string left = base::concat(place, "/opmux_hostile_fill_", i);
        if (fs::exists(left)) all.push_back(left);
      }
    }
    for (const auto& left : fs::recursive_directory_iterator(folder_.path())) {
      all.push_back(left.path().string());
    }
    return all;
  }

  PrivateFolder folder_;
  std::string file_;
  int sockets_[2] = {-1, -1};
};

TEST_P(AttackTest, changes_nothing_and_is_refused_in_time) {
  const probe::ProcessState before = probe::look();
  const std::vector<std::string> facts_before = facts();
  const auto start = std::chrono::steady_clock::now();
  const ProbeResult verdict = try_in(OPMUX_HOSTILE_PLUGINS);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(verdict.code, GetParam().code) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr(GetParam().text));
  EXPECT_LE(took.count(), 2.5);
  EXPECT_EQ(facts(), facts_before);
  const probe::ProcessState after = probe::look();
  EXPECT_THAT(probe::differences(before, after), IsEmpty());
  EXPECT_EQ(after.files, before.files);
}

TEST_P(AttackTest, has_a_harmless_twin_that_passes) {
  if (GetParam().name != "fill_folders") setenv("OMP_HOSTILE_TARGET", file_.c_str(), 1);
  const ProbeResult verdict = try_in(OPMUX_HARMLESS_TWINS);
  EXPECT_TRUE(verdict.ok()) << verdict.code << ": " << verdict.text;
}

INSTANTIATE_TEST_SUITE_P(Attacks, AttackTest, testing::ValuesIn(attacks()),
                         [](const auto& attack) { return attack.param.name; });

}  // namespace
}  // namespace opmux::plugin
