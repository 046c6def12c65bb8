#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/probe/probe.hpp"
#include "probe/process_state.hpp"

namespace opmux::plugin {
namespace {

/// The expected probe result of one hostile plugin.
struct Hostile {
  std::string name, code, stage;
  int signal = 0;
};

std::ostream& operator<<(std::ostream& out, const Hostile& hostile) { return out << hostile.name; }

#ifdef OPMUX_SANITIZED  // the probe cannot limit data then, see src/plugin/probe/probe.cpp
constexpr const char* kAllocating = "probe.hang";
#else
constexpr const char* kAllocating = "probe.memory";
#endif

std::vector<Hostile> crashing() {
  std::vector<Hostile> all;
  const std::pair<const char*, int> deeds[] = {
      {"segv", SIGSEGV}, {"ill", SIGILL}, {"fpe", SIGFPE}, {"bus", SIGBUS}, {"abort", SIGABRT}};
  for (const auto& [deed, signal] : deeds) {
    for (const char* stage : {"open", "query", "init", "self_test"}) {
      all.push_back({std::string(deed) + "_at_" + stage, "probe.crash", stage, signal});
    }
  }
  return all;
}

/// Plugins that the probe refuses before any of their code is in this process.
std::vector<Hostile> refused_by_probe() {
  std::vector<Hostile> all = crashing();
  const std::vector<Hostile> others{
      {"segv_at_is_available", "probe.crash", "is_available", SIGSEGV},
      {"throw_at_is_available", "plugin.threw", "is_available"},
      {"kill_at_is_available", "probe.forbidden", "is_available"},
      {"exit_at_open", "probe.exit", "open"},
      {"exit_at_once_at_query", "probe.exit", "query"},
      {"exit_at_once_at_self_test", "probe.exit", "self_test"},
      {"allocate_at_init", kAllocating, "init"},
      {"overflow_stack_at_self_test", "probe.crash", "self_test", SIGSEGV},
      {"jump_at_init", "probe.crash", "init", SIGABRT},
      {"close_files_at_open", "probe.files", "open"},
      {"close_errors_at_query", "probe.files", "query"},
      {"signal_mask_at_query", "probe.signal_mask", "query"},
      {"rounding_at_open", "probe.floating_point", "open"},
      {"traps_at_init", "probe.floating_point", "init"},
#if defined(__x86_64__)
      {"flush_to_zero_at_open", "probe.floating_point", "open"},
#endif
      {"environment_at_open", "probe.environment", "open"},
      {"locale_at_init", "probe.locale", "init"},
      {"folder_at_self_test", "probe.folder", "self_test"},
      {"umask_at_query", "probe.umask", "query"},
      {"thread_at_open", "probe.threads", "open"},
      {"thread_at_query", "probe.threads", "query"},
      {"handlers_at_init", "probe.handlers", "init"},
      {"timer_at_query", "probe.timers", "query"},
      {"limits_at_init", "probe.limits", "init"},
      {"fork_at_open", "probe.forbidden", "open"},
      {"execute_at_init", "probe.forbidden", "init"},
      {"command_at_self_test", "probe.forbidden", "self_test"},
      {"kill_at_query", "probe.forbidden", "query"},
      {"connect_at_self_test", "probe.forbidden", "self_test"},
      {"throw_at_open", "probe.crash", "open", SIGABRT},
      {"throw_at_query", "plugin.threw", "query"},
      {"throw_at_init", "plugin.threw", "init"},
      {"throw_at_self_test", "plugin.threw", "self_test"},
      {"next_major", "plugin.abi_major", "query"},
      {"previous_major", "plugin.abi_major", "query"},
      {"no_size", "plugin.struct_size", "query"},
      {"huge_size", "plugin.struct_size", "query"},
      {"no_backend_size", "plugin.struct_size", "query"},
      {"huge_impl_size", "plugin.struct_size", "query"},
      {"huge_count", "plugin.count", "query"},
      {"many_backends", "plugin.count", "query"},
      {"huge_stride", "plugin.stride", "query"},
      {"endless_text", "plugin.string", "query"},
      {"text_past_its_page", "probe.crash", "query", SIGSEGV},
      {"control_characters", "plugin.string", "query"},
      {"bad_utf8", "plugin.string", "query"},
      {"wild_pointer", "probe.crash", "query", SIGSEGV},
      {"null_backends", "plugin.null", "query"},
      {"no_run", "plugin.null_function", "query"},
      {"half_a_life", "plugin.null_function", "query"},
      {"reserved", "plugin.reserved", "query"},
      {"missing_library", "plugin.open", "open"},
      {"missing_symbol", "plugin.open", "open"},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::vector<Hostile> hanging() {
  return {{"hang_at_query", "probe.hang", "query"},
          {"hang_at_is_available", "probe.hang", "is_available"},
          {"spin_at_open", "probe.hang", "open"}};
}

ProbeResult try_out(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ProbeResult verdict = probe(probe_program(), {path, file});
  close(file);
  return verdict;
}

std::string hostile_path(const std::string& name) {
  return std::string(OPMUX_HOSTILE_PLUGINS) + "/" + name + ".so";
}
std::string twin_path(const std::string& name) {
  return std::string(OPMUX_HARMLESS_TWINS) + "/" + name + ".so";
}

std::vector<std::string> changes_since(const probe::ProcessState& before) {
  std::vector<std::string> all;
  const probe::ProcessState after = probe::look();
  for (const probe::Difference& difference : probe::differences(before, after)) {
    all.emplace_back(difference.code);
  }
  if (after.files != before.files) all.emplace_back("more files");
  return all;
}

class HostilePlugin : public testing::TestWithParam<Hostile> {};

TEST_P(HostilePlugin, is_refused_without_side_effects_in_this_process) {
  const Hostile& hostile = GetParam();
  const probe::ProcessState before = probe::look();
  const ProbeResult verdict = try_out(hostile_path(hostile.name));
  EXPECT_EQ(verdict.code, hostile.code) << verdict.text;
  EXPECT_EQ(verdict.stage, hostile.stage) << verdict.text;
  EXPECT_EQ(verdict.signal, hostile.signal) << verdict.text;
  EXPECT_THAT(changes_since(before), testing::IsEmpty());
}

TEST_P(HostilePlugin, has_a_harmless_twin_that_passes) {
  const ProbeResult verdict = try_out(twin_path(GetParam().name));
  EXPECT_TRUE(verdict.ok()) << verdict.code << ": " << verdict.text;
  EXPECT_EQ(verdict.manifest.name, "twin_" + GetParam().name);
}

constexpr auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(refused_by_probe, HostilePlugin, testing::ValuesIn(refused_by_probe()),
                         kName);
INSTANTIATE_TEST_SUITE_P(hanging, HostilePlugin, testing::ValuesIn(hanging()), kName);

TEST(HostilePlugins, a_crash_reports_its_address) {
  EXPECT_EQ(try_out(hostile_path("segv_at_query")).address, 0x1000u);
}

TEST(HostilePlugins, a_probe_takes_50_ms_at_the_median_and_a_hang_two_and_a_half_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto time_of = [](const Hostile& hostile) {
    const Clock::time_point start = Clock::now();
    try_out(hostile_path(hostile.name));
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  std::vector<double> times;
  for (const Hostile& hostile : refused_by_probe()) times.push_back(time_of(hostile));
  std::sort(times.begin(), times.end());
  RecordProperty("median_ms", std::to_string(times[times.size() / 2]));
  EXPECT_LE(times[times.size() / 2], 50.0);
  EXPECT_LE(time_of(hanging().front()), 2500.0);
}

}  // namespace
}  // namespace opmux::plugin
