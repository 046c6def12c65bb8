#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.hpp>

#include "base/crypto.hpp"
#include "private_folder.hpp"
#include "replay/recording.hpp"
#include "replay/recording_file.hpp"
#include "stage.hpp"

namespace opmux {
namespace {

constexpr size_t kBombBytes = size_t{4} << 20;
#ifdef OPMUX_SANITIZED  // red zones
constexpr long kMostKilobytes = 75 * 1024;
#else
constexpr long kMostKilobytes = 50 * 1024;
#endif

std::string repeated(std::string_view piece, std::string_view before = {}) {
  std::string text(before);
  while (text.size() + piece.size() <= kBombBytes) text += piece;
  return text;
}

/// The largest resident size of this process so far; 0 if it is unknown.
long peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return 0;
}

/// Growth of the peak of resident memory, in kilobytes, while `read` runs in a forked process. -1
/// if it returned false, crashed or hung.
long peak_of(const std::function<bool()>& read) {
  int report[2];
  if (::pipe(report) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    // Without free memory that the reader could reuse unnoticed.
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak so far
    const long before = peak_kilobytes();
    const bool fine = read();
    const long grown = fine && before > 0 ? peak_kilobytes() - before : -1;
    _exit(::write(report[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  ::close(report[1]);
  long grown = -1;
  if (::read(report[0], &grown, sizeof grown) != sizeof grown) grown = -1;
  ::close(report[0]);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0 ? grown : -1;
}

/// A text that nests as deep as its size allows. It is made by the test that reads it, because
/// every test process creates all parameters.
struct Bomb {
  const char* name;
  const char* piece;
  const char* before = "";
  std::string text() const { return repeated(piece, before); }
};

constexpr Bomb kBombs[] = {
    {"brackets", "["},           {"braces", "{"},
    {"nested_maps", "{a: "},     {"nested_lists", "- "},
    {"questions", "? "},         {"json_maps", "{\"a\":"},
    {"parentheses", "("},        {"brackets_in_a_rule", "[", "opmux: 1\nrules: "},
    {"brackets_on_lines", "[\n"}};

class BombTest : public testing::TestWithParam<Bomb> {
 protected:
  void expect_small(const std::function<bool()>& read) {
    const long grown = peak_of(read);
    RecordProperty("peak_kb", std::to_string(grown));
    EXPECT_GE(grown, 0) << "the reader accepted the text, crashed or hung";
    EXPECT_LE(grown, kMostKilobytes);
  }
};

TEST_P(BombTest, costs_little_as_a_policy_text) {
  Runtime runtime = Runtime::create(test::bare()).value();
  const std::string text = GetParam().text();
  expect_small([&] { return !runtime.policy().load(text, "bomb.yaml").ok(); });
  expect_small([&] { return !runtime.policy().check(text, "bomb.yaml"); });
}

TEST_P(BombTest, costs_little_as_a_policy_file) {
  const PrivateFolder folder;
  Options options = test::bare({{"OPMUX_STATE_DIR", folder.at("state")}});
  options.sources.config = folder.write("policy.yaml", GetParam().text());
  options.sources.own_thread = false;
  expect_small([&] { return !Runtime::create(options); });
}

TEST_P(BombTest, costs_little_as_a_schema) {
  Runtime runtime = Runtime::create(test::bare()).value();
  const std::string text = GetParam().text();
  const std::string where = "deep(out Tensor y[N], Tensor x[N]) where " + text;
  expect_small([&] { return !runtime.define(text).ok(); });
  expect_small([&] { return !runtime.define(where).ok(); });
}

TEST_P(BombTest, costs_little_as_a_condition) {
  const std::string text = GetParam().text();
  expect_small([&] { return !Condition::parse(text); });
}

TEST_P(BombTest, costs_little_as_a_lockfile) {
  const std::string text = GetParam().text();
  expect_small([&] { return !Lockfile::parse(text, "bomb.lock"); });
}

TEST_P(BombTest, costs_little_as_a_replay_file) {
  const std::string text = GetParam().text();
  std::string sealed(replay::kTitle);
  sealed += "\nsha256 " + base::sha256_hex(std::as_bytes(std::span(text))) + "\n" + text;
  expect_small([&] { return !replay::parse_file(text, "bomb"); });
  expect_small([&] { return !replay::parse_file(sealed, "bomb"); });
}

INSTANTIATE_TEST_SUITE_P(All, BombTest, testing::ValuesIn(kBombs),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace opmux
