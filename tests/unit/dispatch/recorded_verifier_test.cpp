#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "dispatch/compiled_operator.hpp"
#include "dispatch/engine.hpp"
#include "runtime/core.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Not;

constexpr const char* kScaled =
    "scaled(out Tensor y[..., H], Tensor x[..., H], Tensor? w[H], int n = 0, float eps = 1)";

/// An operator whose first candidate, scaled/asks.one, has a verifier with recorded reads.
struct RecordedVerifier : testing::Test {
  RecordedVerifier() {
    stage.add({.id = "scaled/asks.one",
               .kind = Kind::default_,
               .priority = 200,
               .verify =
                   [this](const Facts& facts) {
                     ++asked;
                     return check(facts);
                   },
               .flags = OPMUX_IMPL_VERIFY_RECORDED});
    stage.add({.id = "scaled/plain.one", .kind = Kind::default_, .priority = 100});
  }
  static Options with_sink(std::vector<Event>& events) {
    Options options = bare();
    options.sources.own_thread = false;  // the job that frees states would take the lock at times
    options.sink = [&events](const Event& event) {
      static std::mutex one_at_a_time;
      const std::lock_guard lock(one_at_a_time);
      events.push_back(event);
    };
    return options;
  }
  template <class... Args>
  std::string ran(const Args&... args) const {
    return ran_by([&] { EXPECT_TRUE(op(args...).ok()); });
  }
  dispatch::OperatorSlot& slot() { return *stage.runtime.core().engine().find("scaled"); }
  const Event* event(const std::string& code) const {
    const auto found = std::ranges::find(events, code, &Event::code);
    return found == events.end() ? nullptr : &*found;
  }

  std::atomic<int> asked{0};
  std::function<std::string(const Facts&)> check = [](const Facts&) { return std::string(); };
  std::vector<Event> events;
  Stage stage{with_sink(events)};
  const Operator op = stage.define(kScaled);
  const std::string asks = "scaled/asks.one", plain = "scaled/plain.one";
};

TEST_F(RecordedVerifier, sees_every_fact_without_a_list) {
  std::vector<std::optional<int64_t>> seen;
  check = [&](const Facts& facts) {
    seen = {facts.dim("H"),
            facts.dim("rows"),
            facts.get(OPMUX_FACT_CONTIGUOUS, "x"),
            facts.get(OPMUX_FACT_ALIGNMENT, "x"),
            facts.get(OPMUX_FACT_LAYOUT, "x"),
            facts.get(OPMUX_FACT_SCALAR, "n"),
            facts.get(OPMUX_FACT_PRESENT, "w"),
            facts.get(OPMUX_FACT_RANK, "w"),
            facts.get(OPMUX_FACT_AMBIENT, "grad"),
            facts.get(OPMUX_FACT_TAG, ""),
            facts.dim("unknown")};
    return std::string();
  };
  const Rows t(3, 8);
  const Tag tag = stage.runtime.tag("layer.3");
  EXPECT_EQ(ran_by([&] { ASSERT_TRUE(op.with({.tag = tag})(t.y, t.x, none, 7).ok()); }), asks);
  const std::vector<std::optional<int64_t>> expected{
      8, 3, 1, 4096, 0x10, 7, 0, std::nullopt, 0, tag.number, std::nullopt};
  EXPECT_EQ(seen, expected);
}

TEST_F(RecordedVerifier, is_asked_once_for_calls_that_agree_in_what_it_read) {
  check = [](const Facts& facts) { return std::string(*facts.dim("H") % 16 == 0 ? "" : "odd"); };
  const Rows a(2, 8), b(3, 8), c(2, 16), d(5, 16);
  EXPECT_EQ(ran(a.y, a.x), plain);
  EXPECT_EQ(asked, 2) << "the first answer shows that it reads H";
  EXPECT_EQ(ran(b.y, b.x, none, 1), plain);
  EXPECT_EQ(ran(a.y, a.x, none, 2, 0.5), plain);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(ran(c.y, c.x), asks);
  EXPECT_EQ(asked, 3);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(ran(d.y, d.x), asks);
    EXPECT_EQ(ran(b.y, b.x), plain);
  }
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(slot().decided_each_time, 0u);
  EXPECT_EQ(stage.runtime.core().engine().retired_waiting(), 0u);
}

TEST_F(RecordedVerifier, that_reads_nothing_is_asked_once) {
  for (int64_t h = 1; h < 40; ++h) {
    const Rows t(2, h);
    EXPECT_EQ(ran(t.y, t.x, none, h), asks);
  }
  EXPECT_EQ(asked, 1);
}

TEST_F(RecordedVerifier, may_read_a_fact_only_for_some_calls) {
  check = [](const Facts& facts) -> std::string {
    if (*facts.get(OPMUX_FACT_SCALAR, "n") == 0) return "";
    return *facts.dim("H") == 8 ? "" : "H is not 8";
  };
  const Rows a(2, 8), b(2, 16);
  EXPECT_EQ(ran(a.y, a.x), asks);
  EXPECT_EQ(ran(b.y, b.x), asks);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(ran(b.y, b.x, none, 1), plain);
  EXPECT_EQ(ran(a.y, a.x, none, 1), asks);
  EXPECT_EQ(ran(b.y, b.x, none, 0), asks);
  EXPECT_EQ(ran(b.y, b.x, none, 1), plain);
}

TEST_F(RecordedVerifier, depends_on_the_absence_of_a_fact_that_it_asked_for) {
  check = [](const Facts& facts) {
    return std::string(facts.get(OPMUX_FACT_DTYPE, "w") ? "w is given" : "");
  };
  const Rows t(2, 8);
  EXPECT_EQ(ran(t.y, t.x), asks);
  EXPECT_EQ(ran(t.y, t.x, t.w), plain);
  EXPECT_EQ(ran(t.y, t.x), asks);
}

TEST_F(RecordedVerifier, alignments_and_strides_that_it_reads_are_compared) {
  check = [](const Facts& facts) -> std::string {
    if (*facts.get(OPMUX_FACT_ALIGNMENT, "x") < 64) return "x is not aligned";
    return *facts.get(OPMUX_FACT_CONTIGUOUS, "x") != 0 ? "" : "x has gaps";
  };
  Rows t(2, 8);
  const std::array<int64_t, 2> gaps{32, 1};
  const TensorView shifted(t.in + 1, f32, {2, 8}), wide(t.in, f32, t.x.shape(), gaps);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran(t.y, t.x), asks);
    EXPECT_EQ(ran(t.y, shifted), plain);
    EXPECT_EQ(ran(t.y, wide), plain);
  }
}

/// A verifier whose reads depend on the values that it read before.
std::string nested_checks(const std::function<int64_t(uint32_t, const char*)>& get) {
  if (get(OPMUX_FACT_DIM, "H") % 2 != 0) return get(OPMUX_FACT_SCALAR, "n") < 2 ? "" : "odd";
  if (get(OPMUX_FACT_DIM, "rows") > 2) return "rows";
  return get(OPMUX_FACT_SCALAR, "n") == get(OPMUX_FACT_DIM, "H") ? "" : "n";
}

TEST_F(RecordedVerifier, random_calls_run_the_implementation_that_a_fresh_answer_selects) {
  check = [](const Facts& facts) {
    return nested_checks(
        [&](uint32_t kind, const char* name) { return facts.get(kind, name).value(); });
  };
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const int64_t h = 1 + random() % 4, rows = 1 + random() % 4, n = random() % 4;
    const std::string refusal = nested_checks([&](uint32_t kind, const char* name) {
      return kind == OPMUX_FACT_SCALAR ? n : *name == 'H' ? h : rows;
    });
    const Rows t(rows, h);
    ASSERT_EQ(ran(t.y, t.x, none, n), refusal.empty() ? asks : plain) << h << rows << n;
  }
  EXPECT_LE(asked, 2 * 4 * 4 * 4);
}

TEST_F(RecordedVerifier, threads_that_read_new_facts_at_a_time_get_the_right_answers) {
  check = [](const Facts& facts) {
    return nested_checks(
        [&](uint32_t kind, const char* name) { return facts.get(kind, name).value(); });
  };
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        const int64_t h = 1 + random() % 4, n = random() % 4;
        const Rows tensors(2, h);
        const bool accepted = h % 2 != 0 ? n < 2 : n == h;
        wrong += ran(tensors.y, tensors.x, none, n) == (accepted ? asks : plain) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(RecordedVerifier, explain_lists_the_facts_that_it_read) {
  check = [](const Facts& facts) { return std::string(*facts.dim("H") == 8 ? "" : "not 8"); };
  const Rows t(2, 8);
  const Explanation before = op.explain(none, t.x);
  EXPECT_EQ(before.chosen, asks);
  EXPECT_THAT(before.depends_on, Contains("H"));
  EXPECT_THAT(before.independent, AllOf(Contains("rows"), Not(Contains("H"))));
  EXPECT_EQ(ran(t.y, t.x), asks);
  EXPECT_THAT(op.explain(none, t.x).depends_on, Contains("H"));
}

TEST_F(RecordedVerifier, a_plan_is_bound_by_its_answer_and_stays_current) {
  check = [](const Facts& facts) { return std::string(*facts.dim("H") == 8 ? "" : "not 8"); };
  const Rows a(2, 8), b(2, 16);
  Plan first = op.bind(a.y, a.x).value(), second = op.bind(b.y, b.x).value();
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(first(a.y, a.x).ok()); }), asks);
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(second(b.y, b.x).ok()); }), plain);
  EXPECT_EQ(first.state(), Plan::State::current);
  EXPECT_EQ(second.state(), Plan::State::current);
}

TEST_F(RecordedVerifier, classes_decided_before_it_read_another_fact_are_locked) {
  check = [](const Facts& facts) -> std::string {
    if (*facts.get(OPMUX_FACT_SCALAR, "n") == 0) return "";
    return *facts.dim("H") == 8 ? "" : "H is not 8";
  };
  const Rows a(2, 8), b(2, 16);
  EXPECT_EQ(op.decide(none, a.x).value(), asks);
  EXPECT_EQ(op.decide(none, b.x, none, 1).value(), plain);
  EXPECT_EQ(stage.runtime.lockfile().freeze().value().choices.size(), 2u);
  const auto deviates = [&](const Rows& t, int64_t n) {
    CallReport report;
    EXPECT_TRUE(op.with(report)(t.y, t.x, none, n).ok());
    return report.fell_back;
  };
  EXPECT_FALSE(deviates(a, 0));
  EXPECT_FALSE(deviates(b, 0)) << "H was not read";
  EXPECT_FALSE(deviates(b, 1));
  EXPECT_TRUE(deviates(a, 1));
}

TEST_F(RecordedVerifier, that_reads_more_than_8_sizes_is_named_with_the_dimension) {
  check = [](const Facts& facts) { return std::string(*facts.dim("H") % 4 == 0 ? "" : "odd"); };
  for (int64_t h = 1; h <= 8; ++h) {
    const Rows t(2, h);
    EXPECT_EQ(ran(t.y, t.x), h % 4 == 0 ? asks : plain);
  }
  EXPECT_EQ(event("dispatch.many_values"), nullptr);
  for (int64_t h = 9; h <= 20; ++h) {
    const Rows t(2, h);
    EXPECT_EQ(ran(t.y, t.x), h % 4 == 0 ? asks : plain);
  }
  const Event* const told = event("dispatch.many_values");
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->level, Level::warning);
  EXPECT_EQ(told->op, "scaled");
  EXPECT_EQ(told->impl, asks);
  EXPECT_EQ(told->text,
            "its verifier has read more than 8 sizes of H, and each of them is decided "
            "separately; compare H in a capability (at_least, at_most, multiple_of) instead");
}

TEST_F(RecordedVerifier, that_reads_other_facts_each_time_is_named_and_counted) {
  const std::array<const char*, 5> names{"y", "x", "w", "x", "w"};
  check = [&](const Facts& facts) {
    const auto turn = static_cast<size_t>(asked - 1) % names.size();
    (void)facts.get(turn < 3 ? OPMUX_FACT_ALIGNMENT : OPMUX_FACT_LAYOUT, names[turn]);
    return std::string();
  };
  const Rows t(2, 8);
  EXPECT_EQ(ran(t.y, t.x), asks);
  EXPECT_EQ(asked, 4) << "a call asks at most four states";
  EXPECT_EQ(slot().decided_each_time, 1u);
  EXPECT_EQ(stage.stats(asks).decided_each_time, 1u);
  const Event* const told = event("dispatch.decided_each_time");
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->level, Level::warning);
  EXPECT_EQ(told->impl, asks);
  EXPECT_EQ(told->text,
            "some calls are decided each time, because a verifier reads other facts when it is "
            "asked again about the same call");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ran(t.y, t.x), asks);
  EXPECT_EQ(asked, 6) << "its last new fact, and an answer that is cached";
}

TEST_F(RecordedVerifier, with_a_list_starts_with_the_facts_of_the_list) {
  int listed = 0;
  stage.add({.id = "scaled/listed.one",
             .kind = Kind::default_,
             .priority = 300,
             .verify =
                 [&](const Facts& facts) {
                   ++listed;
                   return std::string(*facts.dim("H") == 8 ? "" : "not 8");
                 },
             .verify_reads = {{{OPMUX_FACT_DIM, "H"}}},
             .flags = OPMUX_IMPL_VERIFY_RECORDED});
  const Rows a(2, 8), b(2, 16);
  EXPECT_EQ(ran(a.y, a.x), "scaled/listed.one");
  EXPECT_EQ(listed, 1);
  EXPECT_EQ(ran(b.y, b.x), asks);
  EXPECT_EQ(listed, 2);
}

TEST(CallsWithoutKey, are_counted_and_the_event_names_the_cause) {
  std::vector<Event> events;
  Stage stage(RecordedVerifier::with_sink(events));
  const Operator pair = stage.define("pair(out Tensor y[H], Tensor x[H])");
  stage.add({.id = "pair/one.x", .kind = Kind::default_, .caps = Caps{}.contiguous()});
  stage.add({.id = "pair/two.x", .kind = Kind::default_, .priority = 1});
  ASSERT_TRUE(stage.runtime
                  .set_selector({.reads = {"dtype(x)"},
                                 .pick = [](const Selection&) { return std::nullopt; }})
                  .ok());
  constexpr DType kTwoFloats{f32.code, f32.bits, 2};
  Rows t;
  const TensorView x(t.in, kTwoFloats, {4}), y(t.out, kTwoFloats, {4});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(pair(y, x).ok()); }), "pair/one.x");
  EXPECT_EQ(stage.runtime.core().engine().find("pair")->decided_each_time, 3u);
  EXPECT_EQ(stage.stats("pair/one.x").decided_each_time, 3u);
  stage.kernel("pair/one.x").body = [](CallFrame&) { return Outcome::failed; };
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(pair(y, x).ok()); }), "pair/one.x pair/two.x");
  EXPECT_EQ(stage.stats("pair/one.x").decided_each_time, 4u);
  EXPECT_EQ(stage.stats("pair/two.x").decided_each_time, 0u) << "it was not chosen first";
  const auto told =
      std::ranges::find(events, std::string("dispatch.decided_each_time"), &Event::code);
  ASSERT_NE(told, events.end());
  EXPECT_EQ(told->op, "pair");
  EXPECT_EQ(told->text,
            "some calls are decided each time, because a class key cannot hold an element type "
            "with several lanes");
}

}  // namespace
}  // namespace opmux::test
