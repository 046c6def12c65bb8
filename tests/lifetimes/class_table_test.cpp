#include <atomic>
#include <thread>
#include <vector>

#include "dispatch/compiled_operator.hpp"
#include "dispatch/engine.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

constexpr int64_t kTable = dispatch::ClassTable::kCapacity;

/// Calls an operator whose classes are the sizes of H: even ones run picky.one, odd ones plain.one.
struct ClassTableLifetime : testing::Test {
  ClassTableLifetime() {
    stage.add({.id = "copy/picky.one",
               .kind = Kind::default_,
               .priority = 200,
               .verify =
                   [this](const Facts& facts) {
                     ++decisions;
                     return std::string(*facts.dim("H") % 2 == 0 ? "" : "odd");
                   },
               .verify_reads = {{{OPMUX_FACT_DIM, "H"}}}});
    stage.add({.id = "copy/plain.one", .kind = Kind::default_, .priority = 100});
  }
  static Options with_sink(std::vector<Event>& events) {
    Options options = bare();
    options.sink = [&events](const Event& event) { events.push_back(event); };
    return options;
  }
  /// The kernels do not read the memory.
  void call(int64_t h) {
    const TensorView y(&memory[0], f32, {1, h}), x(&memory[4], f32, {1, h});
    ASSERT_EQ(ran_by([&] { ASSERT_TRUE(op(y, x).ok()); }),
              h % 2 == 0 ? "copy/picky.one" : "copy/plain.one");
  }
  dispatch::OperatorSlot& slot() const { return *stage.runtime.core().engine().find("copy"); }
  uint32_t classes() const { return slot().current.load()->classes(); }
  /// References of states and others to the operator's record.
  long uses() const { return slot().current.load()->sources().op.use_count(); }
  size_t told(const std::string& code) const {
    return static_cast<size_t>(std::ranges::count(events, code, &Event::code));
  }

  std::vector<Event> events;
  mutable Stage stage{with_sink(events)};
  const Operator op = stage.define(kCopy);
  std::atomic<int64_t> decisions{0};
  float memory[8] = {};
};

TEST_F(ClassTableLifetime, many_times_its_capacity_keeps_memory_bounded) {
  // A table is filled, then misses as many calls but one; the next call starts another one.
  constexpr int64_t kTables = 6, kOfTable = 2 * kTable - 1;
  call(1);
  const long uses_before = uses();
  for (int64_t h = 2; h <= kTables * kOfTable; ++h) {
    call(h);
    ASSERT_LE(classes(), kTable);
  }
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
  EXPECT_EQ(uses(), uses_before) << "a discarded state is alive";
  EXPECT_EQ(decisions, kTables * kOfTable + kTables - 1);
  EXPECT_EQ(slot().decided_each_time, static_cast<uint64_t>(kTables * (kTable - 1)));
  EXPECT_EQ(stage.stats("copy/picky.one").decided_each_time +
                stage.stats("copy/plain.one").decided_each_time,
            slot().decided_each_time);
  EXPECT_EQ(told("dispatch.classes_discarded"), 1u);
  EXPECT_EQ(told("dispatch.decided_each_time"), 1u);
}

TEST_F(ClassTableLifetime, a_class_after_a_full_table_is_cached_again) {
  for (int64_t h = 1; h <= kTable; ++h) call(h);
  constexpr int64_t kLater = 1'000'001;
  for (int64_t i = 0; i < kTable - 1; ++i) call(kLater);
  EXPECT_EQ(decisions, 2 * kTable - 1) << "each of these calls is decided";
  EXPECT_EQ(classes(), kTable);
  call(kLater);
  EXPECT_EQ(classes(), 1u);
  const int64_t before = decisions;
  for (int i = 0; i < 100; ++i) call(kLater);
  for (int i = 0; i < 100; ++i) call(kLater + 1 + i % 3);
  EXPECT_EQ(decisions, before + 3);
  EXPECT_EQ(classes(), 4u);
}

TEST_F(ClassTableLifetime, a_few_classes_more_than_fit_do_not_discard_the_others) {
  constexpr int64_t kBeyond = 100;
  for (int round = 0; round < 3; ++round) {
    for (int64_t h = 1; h <= kTable + kBeyond; ++h) call(h);
  }
  EXPECT_EQ(decisions, kTable + 3 * kBeyond);
  EXPECT_EQ(told("dispatch.classes_discarded"), 0u);
  ASSERT_EQ(told("dispatch.decided_each_time"), 1u);
  const auto event =
      std::ranges::find(events, std::string("dispatch.decided_each_time"), &Event::code);
  EXPECT_EQ(event->level, Level::warning);
  EXPECT_EQ(event->op, "copy");
  EXPECT_EQ(event->fields.at(0), (std::pair<std::string, std::string>("reason", "full")));
}

TEST_F(ClassTableLifetime, the_event_of_a_discarded_table_names_the_cause) {
  for (int64_t h = 1; h <= 2 * kTable; ++h) call(h);
  const auto event =
      std::ranges::find(events, std::string("dispatch.classes_discarded"), &Event::code);
  ASSERT_NE(event, events.end());
  EXPECT_EQ(event->text,
            "calls fall into more than 4096 decision classes, so that all of them are decided "
            "again; copy/picky.one distinguishes 4096 values of H; compare it with a few numbers "
            "instead");
}

TEST_F(ClassTableLifetime, a_bound_plan_stays_current_when_the_table_is_discarded) {
  const TensorView y(&memory[0], f32, {1, 2}), x(&memory[4], f32, {1, 2});
  Plan plan = op.bind(y, x).value();
  for (int64_t h = 1; h <= 2 * kTable; ++h) call(h);
  EXPECT_EQ(told("dispatch.classes_discarded"), 1u);
  EXPECT_EQ(plan.state(), Plan::State::current);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(plan(y, x).ok()); }), "copy/picky.one");
}

TEST(ClassTableThreads, discard_the_table_while_others_use_it) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add(
      {.id = "copy/picky.one",
       .kind = Kind::default_,
       .priority = 200,
       .verify =
           [](const Facts& facts) { return std::string(*facts.dim("H") % 2 == 0 ? "" : "odd"); },
       .verify_reads = {{{OPMUX_FACT_DIM, "H"}}}});
  stage.add({.id = "copy/plain.one", .kind = Kind::default_, .priority = 100});
  dispatch::OperatorSlot& slot = *stage.runtime.core().engine().find("copy");
  std::atomic<int> wrong{0};
  float memory[8] = {};
  const auto call = [&](int64_t h) {
    const TensorView y(&memory[0], f32, {1, h}), x(&memory[4], f32, {1, h});
    const std::string ran = ran_by([&] { wrong += op(y, x).ok() ? 0 : 1; });
    wrong += ran == (h % 2 == 0 ? "copy/picky.one" : "copy/plain.one") ? 0 : 1;
  };
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 3 * kTable; ++i) {
        call(1 + t * 3 * kTable + i);
        call(2 + i % 8);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
  EXPECT_LE(slot.current.load()->classes(), kTable);
}

}  // namespace
}  // namespace opmux::test
