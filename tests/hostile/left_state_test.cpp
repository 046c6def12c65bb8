#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opmux/opmux.hpp>

#include "private_folder.hpp"
#include "probe/process_state.hpp"

namespace opmux {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

/// A plugin whose kernel leaves a state changed, and the words of the event about it.
struct Leaving {
  std::string plugin, words;
};

class LeftStateTest : public testing::TestWithParam<Leaving> {
 protected:
  Runtime load(const std::string& from) {
    const std::string name = GetParam().plugin + ".so";
    fs::create_directories(folder_.at("plugins"));
    fs::copy_file(from + "/" + name, folder_.at("plugins/" + name));
    Options options;
    options.backends = false;
    options.environment = {{std::string("OPMUX_STATE_DIR"), folder_.at("state")}};
    options.plugins.folders = {folder_.at("plugins")};
    options.sink = [this](const Event& event) {
      if (event.code == "call.left_state") events_.push_back(event);
    };
    return Runtime::create(options).value();
  }
  /// The changes of this process since the test began.
  std::vector<std::string> changes() const {
    std::vector<std::string> all;
    for (const probe::Difference& one : probe::differences(before_, probe::look())) {
      if (one.code != "probe.threads") all.emplace_back(one.code);  // the runtime has a thread
    }
    return all;
  }

  TensorView x() { return {x_.data(), f32, {1, 8}}; }
  TensorView y() { return {y_.data(), f32, {1, 4}}; }

  PrivateFolder folder_;
  std::vector<Event> events_;
  std::vector<float> x_{1, 2, 3, 4, 1, 1, 1, 1}, y_{0, 0, 0, 0};
  const probe::ProcessState before_ = probe::look();
};

std::string id_of(const std::string& form, const std::string& plugin) {
  return "silu_and_mul/" + form + "_" + plugin + ".f32";
}

TEST_P(LeftStateTest, is_restored_and_reported_once) {
  Runtime runtime = load(OPMUX_HOSTILE_PLUGINS);
  const Operator op = runtime.op("silu_and_mul").value();
  const std::string id = id_of("hostile", GetParam().plugin);
  for (int call = 0; call < 100; ++call) {
    ASSERT_TRUE(op(y(), x()).ok());
    ASSERT_THAT(changes(), IsEmpty()) << "after call " << call;
  }
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].level, Level::warning);
  EXPECT_EQ(events_[0].impl, id);
  EXPECT_THAT(events_[0].text, HasSubstr(GetParam().words));
  for (const CallStats& stats : runtime.stats()) {
    const uint64_t calls = stats.implementation == id ? 100 : 0;
    EXPECT_EQ(stats.calls, calls) << stats.implementation << ": the results of the plugin count";
  }
}

TEST_P(LeftStateTest, is_in_the_report_of_the_call) {
  Runtime runtime = load(OPMUX_HOSTILE_PLUGINS);
  CallReport report;
  ASSERT_TRUE(runtime.op("silu_and_mul")->with(report)(y(), x()).ok());
  EXPECT_EQ(report.implementation, id_of("hostile", GetParam().plugin));
  EXPECT_FALSE(report.fell_back);
  EXPECT_THAT(report.reason, HasSubstr(GetParam().words));
}

TEST_P(LeftStateTest, is_restored_after_each_run_of_a_bound_plan) {
  Runtime runtime = load(OPMUX_HOSTILE_PLUGINS);
  Plan plan = runtime.op("silu_and_mul")->bind(y(), x()).value();
  EXPECT_EQ(plan.implementation(), id_of("hostile", GetParam().plugin));
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(plan(y(), x()).ok());
    EXPECT_THAT(changes(), IsEmpty()) << "after call " << call;
  }
  EXPECT_EQ(events_.size(), 1u);
}

TEST_P(LeftStateTest, has_a_harmless_twin) {
  Runtime runtime = load(OPMUX_HARMLESS_TWINS);
  CallReport report;
  for (int call = 0; call < 10; ++call) {
    ASSERT_TRUE(runtime.op("silu_and_mul")->with(report)(y(), x()).ok());
    EXPECT_EQ(report.implementation, id_of("twin", GetParam().plugin));
    EXPECT_EQ(report.reason, "");
  }
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_THAT(changes(), IsEmpty());
}

std::vector<Leaving> leaving() {
  return {{"leave_rounding", "the floating-point mode"},
#if defined(__x86_64__)
          {"leave_flushing", "the floating-point mode"},
          {"leave_x87", "the floating-point mode"},
#endif
          {"leave_signals", "the signal mask"},
          {"leave_folder", "the working folder"}};
}

INSTANTIATE_TEST_SUITE_P(States, LeftStateTest, testing::ValuesIn(leaving()),
                         [](const auto& one) { return one.param.plugin; });

}  // namespace
}  // namespace opmux
