#include <chrono>
#include <map>
#include <mutex>

#include "drafts.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr int kOperators = 300, kPerOperator = 32;

int32_t always_fails(void*, const opmux_call*) { return OPMUX_FAILED; }

/// A runtime with 300 operators that have 32 implementations each. The last implementation of an
/// operator works; the others accept only an even H and then fail.
struct Crowd : Stage {
  Crowd() : Stage(with_sink()) {
    registry::Batch batch = batch_of("acme", {});
    for (int o = 0; o < kOperators; ++o) {
      const std::string name = "o" + std::to_string(o);
      batch.operators.push_back(name + "(out Tensor y[..., H], Tensor x[..., H])");
      for (int i = 0; i < kPerOperator; ++i) {
        registry::ImplementationDraft one = draft(name, "v" + std::to_string(i));
        one.priority = 100 - i;
        if (i + 1 < kPerOperator) {
          one.caps.multiple_of("H", 2);
          one.kernel.run = always_fails;
        }
        batch.implementations.push_back(std::move(one));
      }
    }
    EXPECT_TRUE(runtime.core().registry().add(batch, true).refused.empty());
    for (int o = 0; o < kOperators; ++o) {
      operators.push_back(runtime.op("o" + std::to_string(o)).value());
    }
  }
  Options with_sink() {
    Options options = bare();
    options.sources.own_thread = false;
    options.sink = [this](const Event& event) {
      const std::lock_guard lock(mutex);
      const std::string reason = event.fields.empty() ? "" : event.fields[0].second;
      ++arrived[event.level][event.code + " " + event.impl + " " + reason];
      // A call that meets an open breaker logs another event, whose number depends on the time.
      if (reason != "health.open") ++by_code[event.code];
    };
    return options;
  }

  std::mutex mutex;
  std::map<Level, std::map<std::string, int>> arrived;
  std::map<std::string, int> by_code;
  std::vector<Operator> operators;
};

TEST(EventsOfManyImplementations, every_warning_arrives_once) {
  Crowd crowd;
  const Rows odd(2, 7), even(2, 8);
  for (const Operator& op : crowd.operators) ASSERT_TRUE(op(odd.y, odd.x).ok());
  constexpr int kFailing = kOperators * (kPerOperator - 1);
  EXPECT_EQ(crowd.by_code["dispatch.refused"], kFailing);
  // A breaker opens after some failures, and its operator is published at most once in 100 ms.
  std::chrono::nanoseconds now = std::chrono::seconds(1);
  for (int i = 0; i < 100 && crowd.by_code["health.opened"] < kFailing; ++i) {
    for (const Operator& op : crowd.operators) ASSERT_TRUE(op(even.y, even.x).ok());
    crowd.runtime.tick(now += std::chrono::milliseconds(200));
  }
  EXPECT_EQ(crowd.by_code["call.fell_back"], kFailing);
  EXPECT_EQ(crowd.by_code["health.opened"], kFailing);
  EXPECT_GE(crowd.arrived[Level::warning].size(), 2u * kFailing);
  for (const auto& [event, times] : crowd.arrived[Level::warning]) ASSERT_EQ(times, 1) << event;
}

}  // namespace
}  // namespace opmux::test
