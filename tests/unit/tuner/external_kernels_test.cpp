#include "tuner/external_kernels.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "temporary_folder.hpp"

namespace opmux::tuner {
namespace {

using namespace std::chrono_literals;

/// A program in place of the interpreter; its text follows a shell's first line.
class ExternalKernelsTest : public ::testing::Test {
 protected:
  ExternalKernelsTest() { std::signal(SIGPIPE, SIG_IGN); }  // as the command does

  std::string program(const std::string& text) {
    const std::string path = folder_.at("python");
    test::write_file(path, "#!/bin/sh\n" + text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  static ExternalRace race() {
    return {{"linear", {"vllm.native", "v1"}},
            {"onednn.dense", "b7"},
            {"x=bf16", "rows=4"},
            2,
            1'500'000'000,
            64};
  }

  test::TemporaryFolder folder_;
};

constexpr const char* kReady = "echo candidate linear vllm.native v1\necho ready\n";

TEST_F(ExternalKernelsTest, asks_for_a_race_and_reads_the_point) {
  const std::string path = program(std::string(R"(echo "$@" >&2
echo noise of a library
)") + kReady + "read line\necho \"$line\" > " +
                                   folder_.at("asked") + R"(
echo baseline onednn.dense@
echo winner vllm.native
echo rigor full
echo day 20776
echo compared vllm.native@v1 -0.2 -0.3 -0.1 24
echo end
)");
  Result<ExternalKernels> started = ExternalKernels::start(path);
  ASSERT_TRUE(started) << started.error().to_string();
  EXPECT_EQ(started->kernels().value(), std::vector{race().kernel});
  const Result<MeasuredPoint> point = started->race(race());
  ASSERT_TRUE(point) << point.error().to_string();
  EXPECT_EQ(point->baseline, race().against) << "the command knows its build";
  EXPECT_EQ(point->winner, "vllm.native");
  ASSERT_EQ(point->comparisons.size(), 1u);
  EXPECT_EQ(point->comparisons[0].implementation, race().kernel.build);
  std::ifstream asked(folder_.at("asked"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(asked), {}),
            "race linear vllm.native onednn.dense threads=2 seconds=1.500000 cold=64 x=bf16 "
            "rows=4\n");
  EXPECT_FALSE(started->race(race())) << "the program has ended";
}

TEST_F(ExternalKernelsTest, passes_on_why_a_race_was_not_possible) {
  const std::string path = program(
      std::string(kReady) + "read line\necho error ArithmeticError: off\necho end\nread line\n");
  Result<ExternalKernels> started = ExternalKernels::start(path);
  ASSERT_TRUE(started && started->kernels());
  const Result<MeasuredPoint> point = started->race(race());
  EXPECT_EQ(point.error().reason(), "tune.python");
  EXPECT_EQ(point.error().message(), "ArithmeticError: off\n");
}

TEST_F(ExternalKernelsTest, fails_without_a_program_that_answers) {
  EXPECT_EQ(ExternalKernels::start(folder_.at("absent")).error().reason(), "tune.python");
  const auto no_kernels = [&](const std::string& text, const ExternalKernels::Deadlines& most) {
    Result<ExternalKernels> started = ExternalKernels::start(program(text), most);
    return std::string(started ? started->kernels().error().message() : "not started");
  };
  EXPECT_NE(no_kernels("exit 1\n", {}).find("the Python worker ended"), std::string::npos);
  EXPECT_NE(no_kernels("exec sleep 60\n", {50ms, 50ms}).find("no answer in time"),
            std::string::npos);
  Result<ExternalKernels> silent =
      ExternalKernels::start(program(std::string(kReady) + "exec sleep 60\n"), {10s, 50ms});
  ASSERT_TRUE(silent && silent->kernels());
  EXPECT_FALSE(silent->race(race()));
  EXPECT_NE(silent->race(race()).error().message().find("ended"), std::string::npos)
      << "a program that did not answer in time is not asked again";
}

TEST_F(ExternalKernelsTest, accepts_no_malformed_answer) {
  Result<ExternalKernels> nameless =
      ExternalKernels::start(program("echo candidate linear\necho candidate l n b#\necho ready\n"));
  EXPECT_TRUE(nameless->kernels()->empty());
  Result<ExternalKernels> started = ExternalKernels::start(
      program(std::string(kReady) + "read line\necho nonsense\necho end\nread line\n"));
  ASSERT_TRUE(started && started->kernels());
  EXPECT_EQ(started->race(race()).error().reason(), "tune.point");
  Result<ExternalKernels> endless = ExternalKernels::start(
      program(std::string(kReady) + "read line\nyes 2>/dev/null | tr -d '\\n'\n"), {10s, 10s});
  ASSERT_TRUE(endless && endless->kernels());
  EXPECT_NE(endless->race(race()).error().message().find("no sensible answer"), std::string::npos);
}

}  // namespace
}  // namespace opmux::tuner
