#include "plugin/probe/probe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/probe/probe.hpp"
#include "plugin/probe/probe_report.hpp"

namespace opmux::plugin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using How = Ending::How;

constexpr Ending kReported{How::exited, protocol::kReported, false};
constexpr std::string_view kNonce = "5eed";

TEST(JudgeProbe, believes_a_whole_report_of_a_program_that_ended_well) {
  ProbeResult verdict;
  verdict.manifest.name = "acme";
  const std::string report = "at\topen\nat\tquery\nnonce\t5eed\n" + to_text(verdict);
  EXPECT_EQ(judge(report, kReported, kNonce), verdict);
  EXPECT_EQ(judge(report, {}, kNonce), verdict) << "another waitpid took the exit status";
  EXPECT_EQ(judge(report, {How::exited, 0, false}, kNonce).code, "probe.exit");
  EXPECT_EQ(judge(report, {How::hung, 0, false}, kNonce).code, "probe.hang");
}

TEST(JudgeProbe, refuses_a_verdict_without_the_nonce_of_the_order) {
  ProbeResult verdict;
  verdict.manifest.name = "acme";
  const std::string text = to_text(verdict);
  for (const char* before : {"at\topen\n", "nonce\t5eee\n", "nonce\t\n", "nonce\t5eed\nat\tx\n"}) {
    const ProbeResult found = judge(before + text, kReported, kNonce);
    EXPECT_EQ(found.code, "probe.forged") << before;
    EXPECT_EQ(found.manifest, Manifest{}) << before;
  }
  EXPECT_EQ(judge("nonce\t\n" + text, kReported, "").code, "probe.forged") << "no nonce was given";
}

TEST(JudgeProbe, names_the_layers_that_the_probe_missed_before_the_plugin_ran) {
  ProbeResult verdict;
  verdict.manifest.name = "acme";
  const std::string end = "nonce\t5eed\n" + to_text(verdict);
  const std::string start = "at\tstart\nmissing\tlandlock\tipc_namespace\nat\topen\n";
  EXPECT_THAT(judge(start + end, kReported, kNonce).missing,
              ElementsAre("landlock", "ipc_namespace"));
  EXPECT_THAT(judge("at\topen\nmissing\tlandlock\n" + end, kReported, kNonce).missing, IsEmpty())
      << "the plugin may have written it";
  const ProbeResult refused = judge(start, {How::exited, protocol::kUnconfined, false}, kNonce);
  EXPECT_EQ(refused.code, "probe.unconfined");
  EXPECT_THAT(refused.text, HasSubstr("lacks landlock, ipc_namespace"));
}

TEST(ProbeOrder, is_read_as_it_was_written_and_refused_otherwise) {
  for (const bool every : {false, true}) {
    const protocol::Order read = protocol::parse_order(to_text(protocol::Order{"5eed", every}));
    EXPECT_EQ(read.nonce, "5eed");
    EXPECT_EQ(read.require_every_layer, every);
  }
  for (const char* text : {"", "5eed", "5eed\t", "5eed\tsome_layers"}) {
    EXPECT_EQ(protocol::parse_order(text).nonce, "") << text;
  }
}

TEST(JudgeProbe, names_signal_address_and_stage_of_a_crash) {
  const ProbeResult verdict = judge("at\topen\nat\tinit\ncrash\t11\t4096\n", kReported, kNonce);
  EXPECT_EQ(verdict.code, "probe.crash");
  EXPECT_EQ(verdict.text, "SIGSEGV at address 0x1000 in init");
  EXPECT_EQ(verdict.signal, SIGSEGV);
  EXPECT_EQ(verdict.address, 4096u);
  EXPECT_EQ(verdict.stage, "init");
}

TEST(JudgeProbe, distinguishes_endings) {
  const auto code_of = [](std::string_view report, Ending ending) {
    return judge(report, ending, kNonce).code;
  };
  EXPECT_EQ(code_of("at\tquery\n", {How::exited, 0, false}), "probe.exit");
  EXPECT_EQ(code_of("at\tquery\n", {How::signalled, SIGKILL, false}), "probe.crash");
  EXPECT_EQ(code_of("at\tquery\n", {How::signalled, SIGXCPU, false}), "probe.hang");
  EXPECT_EQ(code_of("at\tquery\n", {How::signalled, SIGSYS, false}), "probe.forbidden");
  EXPECT_EQ(code_of("at\tquery\n", {How::hung, 0, true}), "probe.memory");
  EXPECT_EQ(code_of("at\topen\n", {How::hung, 0, false, true}), "probe.threads");
  EXPECT_EQ(code_of("memory\n", kReported), "probe.memory");
  EXPECT_EQ(code_of("forbidden\tfork\n", kReported), "probe.forbidden");
  EXPECT_EQ(code_of("crash\t24\t0\n", kReported), "probe.hang") << "processor time limit";
  EXPECT_EQ(code_of("at\topen\n", {How::exited, protocol::kReportLost, false}), "probe.files");
  EXPECT_EQ(code_of("", {How::exited, protocol::kUnconfined, false}), "probe.unconfined");
  EXPECT_EQ(code_of("nonsense", kReported), "probe.verdict");
  EXPECT_EQ(code_of("", {}), "probe.verdict");
}

TEST(JudgeProbe, hides_a_malformed_stage) {
  EXPECT_EQ(judge("at\t\033[2Jquery\n", {How::exited, 1, false}, kNonce).stage, "2query");
}

TEST(ProbeEnvironment, keeps_what_decides_which_libraries_and_devices_there_are) {
  const char* block[] = {"PATH=/bin",
                         "LD_LIBRARY_PATH=/opt/acme",
                         "CUDA_VISIBLE_DEVICES=0",
                         "AWS_SECRET=",
                         "OCL_ICD_VENDORS=/etc/acme",
                         "POCL_CACHE_DIR=/x",
                         "OMP_NUM_THREADS=2",
                         "LD_PRELOAD=evil.so",
                         "HOME=/root",
                         nullptr};
  EXPECT_THAT(probe_environment(block, "/private"),
              ElementsAre("HOME=/private", "TMPDIR=/private", "LANG=C", "LD_LIBRARY_PATH=/opt/acme",
                          "CUDA_VISIBLE_DEVICES=0", "OCL_ICD_VENDORS=/etc/acme",
                          "POCL_CACHE_DIR=/private", "OMP_NUM_THREADS=2"));
}

class ProbeTest : public testing::Test {
 protected:
  static ProbeResult try_out(const std::string& name, const std::string& path) {
    const int file =
        open((std::string(OPMUX_TEST_PLUGINS) + "/" + name + ".so").c_str(), O_RDONLY | O_CLOEXEC);
    const ProbeResult verdict = probe(probe_program(), {path, file});
    close(file);
    return verdict;
  }
  static std::string path_of(const std::string& name) {
    return std::string(OPMUX_TEST_PLUGINS) + "/" + name + ".so";
  }
};

TEST_F(ProbeTest, reports_the_contents_of_a_plugin) {
  for (const std::string& path : {path_of("good"), std::string()}) {
    const ProbeResult verdict = try_out("good", path);
    ASSERT_TRUE(verdict.ok()) << verdict.text;
    EXPECT_EQ(verdict.manifest.name, "good");
    EXPECT_THAT(verdict.manifest.operators,
                ElementsAre("good.swish(out Tensor y[N], Tensor x[N])"));
    EXPECT_THAT(verdict.manifest.points, ElementsAre("tile() -> int"));
    ASSERT_EQ(verdict.manifest.backends.size(), 1u);
    EXPECT_EQ(verdict.manifest.backends[0].name, "good");
    EXPECT_THAT(verdict.manifest.backends[0].implementations,
                ElementsAre(Manifest::Implementation{"good.swish", "v1"}));
  }
}

TEST_F(ProbeTest, probes_the_checked_file_even_if_its_path_was_replaced) {
  EXPECT_EQ(try_out("disturbing", path_of("good")).code, "probe.floating_point");
}

TEST_F(ProbeTest, works_while_the_program_ignores_sigchld) {
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &before);
  const ProbeResult verdict = try_out("good", path_of("good"));
  sigaction(SIGCHLD, &before, nullptr);
  EXPECT_TRUE(verdict.ok()) << verdict.text;
}

TEST_F(ProbeTest, refuses_if_the_probe_program_is_missing) {
  const ProbeResult verdict = probe("/nowhere/opmux-probe", {path_of("good"), 0});
  EXPECT_EQ(verdict.code, "probe.missing");
  EXPECT_THAT(verdict.text, HasSubstr("/nowhere/opmux-probe"));
}

TEST_F(ProbeTest, leaves_nothing_in_the_folder_for_temporary_files) {
  char folder[] = "/tmp/opmux-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  setenv("TMPDIR", folder, 1);
  EXPECT_TRUE(try_out("good", path_of("good")).ok());
  unsetenv("TMPDIR");
  EXPECT_EQ(rmdir(folder), 0) << "it is not empty";
}

}  // namespace
}  // namespace opmux::plugin
