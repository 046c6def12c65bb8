#include "stage.hpp"

#include <chrono>

namespace opmux::test {
namespace {

using testing::HasSubstr;

struct LockedClassesTest : testing::Test {
  /// Returns the status of a call; `filled` is its report.
  Status call(Rows& t) {
    filled = {};
    return copy->with(filled)(t.y, t.x);
  }
  std::string runs(Rows& t) {
    return ran_by([&] { EXPECT_TRUE(call(t).ok()); });
  }

  CallReport filled;
  Rows wide{2, 32}, narrow{2, 8};
  static Options ticked() {
    Options options = bare();
    options.sources.own_thread = false;
    return options;
  }
  Stage stage{ticked()};
  std::optional<Operator> copy = define_three_copies(stage);
};

TEST_F(LockedClassesTest, strict_alone_never_changes_a_selection) {
  const PolicyScope strict(stage.runtime, {.strict = true});
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_EQ(runs(narrow), "copy/b.x");
  ASSERT_TRUE(stage.kernel("copy/a.x").registration.withdraw().ok());
  EXPECT_EQ(runs(wide), "copy/b.x");
}

TEST_F(LockedClassesTest, strict_while_frozen_refuses_for_a_refused_choice_and_names_what_to_do) {
  EXPECT_EQ(runs(narrow), "copy/b.x");
  Lockfile lock = stage.runtime.lockfile().current();
  lock.choices[0].implementation = "copy/a.x";
  ASSERT_TRUE(stage.runtime.lockfile().freeze(lock).ok());
  EXPECT_EQ(runs(narrow), "copy/b.x");
  EXPECT_TRUE(filled.fell_back);
  EXPECT_THAT(filled.reason, HasSubstr("opmux.lock locks copy/a.x, which is refused: "
                                       "caps.multiple_of H must be a multiple of 16"));
  const PolicyScope strict(stage.runtime, {.strict = true});
  Status refused;
  EXPECT_EQ(ran_by([&] { refused = call(narrow); }), "");
  EXPECT_EQ(refused.code(), Code::frozen);
  EXPECT_EQ(refused.reason(), "lock.deviation");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("opmux.lock locks copy/a.x, which is refused: caps.multiple_of"));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("strict allows no other: make it usable again, lock another (`opmux "
                        "lock`), or call without strict"));
}

TEST_F(LockedClassesTest, strict_while_frozen_refuses_where_a_breaker_opened_its_choice) {
  EXPECT_EQ(runs(narrow), "copy/b.x");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  stage.kernel("copy/b.x").body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(runs(narrow), "copy/b.x copy/c.x");
  EXPECT_EQ(runs(narrow), "copy/c.x");
  EXPECT_TRUE(filled.fell_back);
  const auto refused = [&] {
    const PolicyScope strict(stage.runtime, {.strict = true});
    Status ended;
    EXPECT_EQ(ran_by([&] { ended = call(narrow); }), "");
    EXPECT_EQ(ended.reason(), "lock.deviation") << ended.message();
    EXPECT_THAT(std::string(ended.message()), HasSubstr("make it usable again"));
  };
  refused();
  stage.runtime.tick(std::chrono::steady_clock::now().time_since_epoch() +
                     // From now on decisions take the open breaker into account.
                     std::chrono::seconds(1));
  refused();
  EXPECT_EQ(runs(narrow), "copy/c.x");
  EXPECT_TRUE(filled.fell_back);
  EXPECT_EQ(stage.runtime.lockfile().current().choices.at(0).implementation, "copy/b.x");
}

TEST_F(LockedClassesTest, a_fallback_for_an_open_breaker_is_not_locked) {
  stage.kernel("copy/b.x").body = [](CallFrame&) { return Outcome::failed; };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(runs(narrow), "copy/b.x copy/c.x");
  stage.runtime.tick(std::chrono::steady_clock::now().time_since_epoch() + std::chrono::seconds(1));
  EXPECT_EQ(runs(narrow), "copy/c.x");
  EXPECT_EQ(stage.runtime.lockfile().current().choices.at(0).implementation, "copy/b.x");
}

TEST_F(LockedClassesTest, the_lock_of_a_frozen_runtime_has_each_class_once) {
  EXPECT_EQ(runs(narrow), "copy/b.x");
  Lockfile lock = stage.runtime.lockfile().current();
  lock.choices[0].implementation = "copy/a.x";
  ASSERT_TRUE(stage.runtime.lockfile().freeze(lock).ok());
  EXPECT_EQ(runs(narrow), "copy/b.x");
  EXPECT_EQ(stage.runtime.lockfile().current().choices, lock.choices);
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_EQ(stage.runtime.lockfile().current().choices.size(), 2u);
}

TEST_F(LockedClassesTest, transforms_come_with_the_choice_that_needs_them) {
  const Operator twice = stage.define("twice(out Tensor y[N, H], Tensor x[N, H])");
  stage.add({.id = "twice/fast.x",
             .kind = Kind::default_,
             .priority = 100,
             .caps = Caps{}.dtypes({f32}).contiguous()});
  stage.add({.id = "twice/slow.x", .kind = Kind::default_, .priority = 200});
  ASSERT_TRUE(stage.runtime.policy().set({.transforms = {"contiguous", "widen"}}).ok());
  const std::array<int64_t, 2> shape{2, 8}, strides{1, 2};
  const TensorView columns(wide.in, f32, shape, strides, {});
  const auto ran = [&](const TensorView& y, const TensorView& x) {
    EXPECT_TRUE(twice.with(filled)(y, x).ok());
    return filled.implementation + " " + filled.transforms;
  };
  EXPECT_EQ(ran(narrow.y, columns), "twice/slow.x ");
  EXPECT_EQ(ran(narrow.y, narrow.x), "twice/slow.x ");
  Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), 2u);
  for (LockedChoice& choice : lock.choices) choice.implementation = "twice/fast.x";
  ASSERT_TRUE(stage.runtime.lockfile().freeze(Lockfile::parse(lock.to_string()).value()).ok());
  const PolicyScope strict(stage.runtime, {.strict = true});
  EXPECT_EQ(ran(narrow.y, columns), "twice/fast.x contiguous(x)");
  EXPECT_FALSE(filled.fell_back);
  EXPECT_EQ(ran(narrow.y, narrow.x), "twice/fast.x ");
  const TensorView shorts(wide.in, bf16, {2, 8}), short_y(wide.out, bf16, {2, 8});
  EXPECT_EQ(twice(short_y, shorts).reason(), "lock.deviation");
}

TEST_F(LockedClassesTest, a_call_that_depends_on_many_facts_is_locked) {
  const Operator eight =
      stage.define("eight(out Tensor y[A, B, C, D, E, F, G, I], Tensor x[A, B, C, D, E, F, G, I])");
  stage.add({.id = "eight/a.x", .kind = Kind::default_});
  const Selector all{.reads = {"A", "B", "C", "D", "E", "F", "G", "I", "tag"},
                     .pick = [](const Selection&) { return std::nullopt; }};
  ASSERT_TRUE(stage.runtime.set_selector(all).ok());
  const TensorView x(wide.in, f32, {1, 1, 1, 1, 1, 1, 1, 1});
  const TensorView y(wide.out, f32, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(eight.decide(none, x).value(), "eight/a.x");
  EXPECT_EQ(stage.runtime.lockfile().freeze().value().choices.size(), 1u);
  ASSERT_TRUE(eight.with(filled)(y, x).ok());
  EXPECT_EQ(filled.implementation, "eight/a.x");
  EXPECT_FALSE(filled.fell_back);
}

TEST_F(LockedClassesTest, a_call_that_has_no_class_is_not_locked_and_decide_says_why) {
  const Operator pair = stage.define("pair(out Tensor y[H], Tensor x[H])");
  stage.add({.id = "pair/a.x", .kind = Kind::default_});
  const Selector reads{.reads = {"dtype(x)"},
                       .pick = [](const Selection&) { return std::nullopt; }};
  ASSERT_TRUE(stage.runtime.set_selector(reads).ok());
  constexpr DType kTwoFloats{f32.code, f32.bits, 2};
  const TensorView x(wide.in, kTwoFloats, {4}), y(wide.out, kTwoFloats, {4});
  const Status refused = pair.decide(none, x).error();
  EXPECT_EQ(refused.reason(), "lock.class");
  EXPECT_EQ(std::string(refused.message()),
            "this call of pair cannot be locked: a class key cannot hold an element type with "
            "several lanes");
  EXPECT_TRUE(pair.bind(y, x));
  EXPECT_TRUE(pair(y, x).ok());
  EXPECT_TRUE(stage.runtime.lockfile().freeze().value().choices.empty());
  ASSERT_TRUE(pair.with(filled)(y, x).ok());
  EXPECT_EQ(filled.implementation, "pair/a.x");
  EXPECT_TRUE(filled.fell_back);
}

TEST_F(LockedClassesTest, hundreds_of_classes_are_found_and_kept_like_a_few) {
  constexpr int64_t kClasses = 600;
  const Selector odd_ones{.reads = {"H"},
                          .pick = [](const Selection& asked) -> std::optional<size_t> {
                            if (asked.op != "copy" || *asked.facts[0].number % 2 == 0)
                              return std::nullopt;
                            return asked.accepted.size() - 1;
                          }};
  ASSERT_TRUE(stage.runtime.set_selector(odd_ones).ok());
  for (int64_t h = 1; h <= kClasses; ++h) ASSERT_TRUE(copy->decide(none, Rows(1, h).x));
  const Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), static_cast<size_t>(kClasses));

  Stage other;
  copy = define_three_copies(other);
  ASSERT_TRUE(other.runtime.lockfile().freeze(Lockfile::parse(lock.to_string()).value()).ok());
  for (int64_t h = 1; h <= kClasses; ++h) {
    Rows t(1, h);
    const char* const locked = h % 2 != 0 ? "copy/c.x" : h % 16 == 0 ? "copy/a.x" : "copy/b.x";
    ASSERT_EQ(runs(t), locked) << h;
    ASSERT_FALSE(filled.fell_back) << filled.reason;
    ASSERT_EQ(runs(t), locked) << h;
    ASSERT_TRUE(filled.cached) << h;
  }
  Rows beyond(1, kClasses + 1);
  EXPECT_EQ(runs(beyond), "copy/b.x");
  EXPECT_TRUE(filled.fell_back);
}

}  // namespace
}  // namespace opmux::test
