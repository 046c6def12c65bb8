#include <opmux/opmux.hpp>

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <chrono>

#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <set>

#include "stage.hpp"
#include "temporary_folder.hpp"

namespace opmux::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A policy with the given number of rules; it is invalid if truncated anywhere after its first
/// line.
std::string policy_of(int rules) {
  std::string text = "opmux: 1\nrules: [\n";
  for (int i = 0; i < rules; ++i) text += "  {op: rms_norm, strict: true},\n";
  return text + "]\n";
}

/// Records the policies that come into force.
class Ear {
 public:
  void hear(const PolicyChange& change, uint64_t rules) {
    const std::lock_guard lock(mutex_);
    if (change.status.ok()) in_force_.push_back(rules);
    changed_.notify_all();
  }
  bool wait_for(uint64_t rules, Clock::time_point until) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, until,
                               [&] { return !in_force_.empty() && in_force_.back() == rules; });
  }
  std::vector<uint64_t> in_force() {
    const std::lock_guard lock(mutex_);
    return in_force_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> in_force_;
};

/// Waits 100 ms, as a slow writer does.
void pass_some_time() {
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, 0);
  const itimerspec once{{0, 0}, {0, 100'000'000}};
  ::timerfd_settime(timer, 0, &once, nullptr);
  uint64_t ticks = 0;
  ASSERT_EQ(::read(timer, &ticks, sizeof(ticks)), 8);
  ::close(timer);
}

/// A way in which programs save a file.
struct Saving {
  const char* name;
  std::function<void(const TemporaryFolder& folder, const std::string& text)> save;
};

void swap_config_map(const TemporaryFolder& folder, const std::string& text) {
  static int version = 0;
  const std::string next = "..version" + std::to_string(++version);
  fs::create_directory(folder.at(next));
  write_file(folder.at(next + "/policy.yaml"), text);
  fs::remove(folder.at("..data_tmp"));
  fs::create_directory_symlink(next, folder.at("..data_tmp"));
  fs::rename(folder.at("..data_tmp"), folder.at("..data"));
  if (!fs::is_symlink(folder.at("policy.yaml"))) {
    fs::remove(folder.at("policy.yaml"));
    fs::create_symlink("..data/policy.yaml", folder.at("policy.yaml"));
  }
}

void write_in_two_steps(const TemporaryFolder& folder, const std::string& text) {
  const int file = ::open(folder.at("policy.yaml").c_str(), O_WRONLY | O_TRUNC);
  const size_t half = text.size() / 2;
  ASSERT_EQ(::write(file, text.data(), half), static_cast<ssize_t>(half));
  pass_some_time();
  ASSERT_EQ(::write(file, text.data() + half, text.size() - half),
            static_cast<ssize_t>(text.size() - half));
  ::close(file);
}

const std::vector<Saving> kSavings = {
    {"cp", [](const auto& f, const auto& text) { write_file(f.at("policy.yaml"), text); }},
    {"mv",
     [](const auto& f, const auto& text) {
       write_file(f.at("elsewhere"), text);
       fs::rename(f.at("elsewhere"), f.at("policy.yaml"));
     }},
    {"sed",  // Writes a temporary file next to it and renames it over the original.
     [](const auto& f, const auto& text) {
       write_file(f.at("sedA1b2C3"), text);
       fs::permissions(f.at("sedA1b2C3"), fs::perms::owner_read | fs::perms::owner_write);
       fs::rename(f.at("sedA1b2C3"), f.at("policy.yaml"));
     }},
    {"vim",  // Renames the old file to a backup, writes a new one, removes the backup.
     [](const auto& f, const auto& text) {
       write_file(f.at(".policy.yaml.swp"), "swap");
       fs::rename(f.at("policy.yaml"), f.at("policy.yaml~"));
       write_file(f.at("policy.yaml"), text);
       fs::remove(f.at("policy.yaml~"));
       fs::remove(f.at(".policy.yaml.swp"));
     }},
    {"emacs",  // Keeps the backup; uses a dangling symbolic link as a lock.
     [](const auto& f, const auto& text) {
       fs::create_symlink("user@host.1", f.at(".#policy.yaml"));
       fs::remove(f.at("policy.yaml~"));
       fs::rename(f.at("policy.yaml"), f.at("policy.yaml~"));
       write_file(f.at("policy.yaml"), text);
       fs::remove(f.at(".#policy.yaml"));
     }},
    {"delete_and_recreate",
     [](const auto& f, const auto& text) {
       fs::remove(f.at("policy.yaml"));
       write_file(f.at("policy.yaml"), text);
     }},
    {"truncate_and_write_in_two_steps", write_in_two_steps},
    {"config_map", swap_config_map},
    {"a_burst",
     [](const auto& f, const auto& text) {
       for (size_t size = 20; size < text.size(); size += 40) {
         write_file(f.at("policy.yaml"), text.substr(0, size));
       }
       write_file(f.at("policy.yaml"), text);
     }},
};

class FilesystemTest : public testing::TestWithParam<std::tuple<bool, size_t>> {};

TEST_P(FilesystemTest, the_last_content_wins_and_no_partial_file_is_applied) {
  const auto [looks, which] = GetParam();
  const TemporaryFolder folder;
  write_file(folder.at("policy.yaml"), policy_of(1));
  Options options = bare();
  options.sources.config = folder.at("policy.yaml");
  options.sources.last_known_good = false;
  options.sources.look_at_files = looks;
  Ear ear;
  Runtime runtime = Runtime::create(options).value();
  runtime.policy().on_change(
      [&](const PolicyChange& change) { ear.hear(change, runtime.policy().state().rules); });
  const std::set<uint64_t> whole{40, 50, 60};
  for (const uint64_t rules : whole) {
    kSavings[which].save(folder, policy_of(static_cast<int>(rules)));
    const auto written = Clock::now();
    ASSERT_TRUE(ear.wait_for(rules, written + std::chrono::seconds(10))) << rules << " rules";
    const auto took = std::chrono::duration<double, std::milli>(Clock::now() - written).count();
    std::cout << kSavings[which].name << ": " << took << " ms\n";
    if (std::getenv("OPMUX_RELOAD_SECONDS") != nullptr) {
      EXPECT_LE(took, 300);
    }
  }
  for (const uint64_t rules : ear.in_force()) EXPECT_TRUE(whole.contains(rules)) << rules;
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<bool, size_t>>& each) {
  const auto [looks, which] = each.param;
  return std::string(kSavings[which].name) + (looks ? "_without_inotify" : "");
}
INSTANTIATE_TEST_SUITE_P(, FilesystemTest,
                         testing::Combine(testing::Bool(),
                                          testing::Range<size_t>(0, kSavings.size())),
                         name_of_case);

}  // namespace
}  // namespace opmux::test
