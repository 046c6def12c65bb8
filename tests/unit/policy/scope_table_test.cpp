#include "policy/rules/scope_table.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "forked.hpp"
#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

Policy numbered(int i) { return {.deny = {"norm/acme.v" + std::to_string(i)}}; }

/// Candidates of norm() that remain inside a scope.
std::string ranked_in(const ScopeRef& scope) {
  return scope ? ranked({{Source::scope, scope.layer()->policy()}}) : ranked({});
}

TEST(ScopeTable, equal_content_has_one_number) {
  ScopeTable table;
  const ScopeRef a = table.intern({.prefer = {"vendor"}}).value();
  const ScopeRef b = table.intern({.prefer = {"vendor"}}).value();
  const ScopeRef c = table.intern({.require = {"vendor"}}).value();
  EXPECT_NE(a.serial(), 0u);
  EXPECT_EQ(a.serial(), b.serial());
  EXPECT_EQ(a.layer(), b.layer());
  EXPECT_NE(a.serial(), c.serial());
  EXPECT_EQ(table.alive(), 2u);
}

TEST(ScopeTable, content_covers_every_field) {
  ScopeTable table;
  const ScopeRef a = table.intern({.rules = {{.name = "a", .deny = {"vendor"}}}}).value();
  const ScopeRef b = table.intern({.rules = {{.name = "b", .deny = {"vendor"}}}}).value();
  EXPECT_NE(a.serial(), b.serial());
}

TEST(ScopeTable, lists_do_not_run_into_each_other) {
  ScopeTable table;
  const ScopeRef a = table.intern({.prefer = {"vendor"}, .require = {"default"}}).value();
  const ScopeRef b = table.intern({.prefer = {"vendor", "default"}}).value();
  EXPECT_NE(a.serial(), b.serial());
}

TEST(ScopeTable, an_empty_policy_is_no_scope) {
  ScopeTable table;
  const ScopeRef none = table.intern({}).value();
  EXPECT_FALSE(none);
  EXPECT_EQ(none.serial(), 0u);
  EXPECT_EQ(none.layer(), nullptr);
  EXPECT_EQ(table.alive(), 0u);
}

TEST(ScopeTable, an_invalid_policy_fails_and_leaves_nothing) {
  ScopeTable table;
  EXPECT_EQ(table.intern({.prefer = {"vendr"}}).error().reason(), "policy.token");
  EXPECT_EQ(table.alive(), 0u);
}

TEST(ScopeTable, a_number_leads_back_to_the_layer) {
  ScopeTable table;
  const ScopeRef scope = table.intern({.prefer = {"vendor"}}).value();
  EXPECT_EQ(table.find(scope.serial()), scope.layer());
  EXPECT_EQ(scope.layer()->source(), Source::scope);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(scope.serial() + 1), nullptr);
}

TEST(ScopeTable, a_scope_entered_again_has_the_number_it_had) {
  ScopeTable table;
  const uint32_t first = table.intern(numbered(1)).value().serial();
  EXPECT_EQ(table.alive(), 0u);
  const uint32_t other = table.intern(numbered(2)).value().serial();
  EXPECT_EQ(table.intern(numbered(1)).value().serial(), first);
  EXPECT_NE(other, first);
}

TEST(ScopeTable, copies_keep_a_scope_alive) {
  ScopeTable table;
  ScopeRef a = table.intern(numbered(1)).value();
  ScopeRef b = a;
  a = ScopeRef();
  EXPECT_EQ(table.alive(), 1u);
  const ScopeRef moved = std::move(b);
  EXPECT_EQ(table.alive(), 1u);
  EXPECT_NE(moved.serial(), 0u);
}

TEST(ScopeTable, the_257th_different_one_alive_is_refused) {
  ScopeTable table;
  std::vector<ScopeRef> alive;
  for (int i = 0; i < 256; ++i) alive.push_back(table.intern(numbered(i)).value());
  const auto refused = table.intern(numbered(256));
  EXPECT_EQ(refused.error().code(), Code::resource);
  EXPECT_EQ(refused.error().reason(), "policy.too_many_scopes");
  EXPECT_TRUE(table.intern(numbered(7)).has_value());
  alive.pop_back();
  EXPECT_TRUE(table.intern(numbered(256)).has_value());
  EXPECT_EQ(table.alive(), 255u);
}

TEST(ScopeTable, the_limit_holds_for_scopes_that_come_back) {
  ScopeTable table;
  (void)table.intern(numbered(1000)).value();
  std::vector<ScopeRef> alive;
  for (int i = 0; i < 256; ++i) alive.push_back(table.intern(numbered(i)).value());
  EXPECT_EQ(table.intern(numbered(1000)).error().reason(), "policy.too_many_scopes");
  EXPECT_EQ(table.alive(), 256u);
}

TEST(ScopeTable, numbers_are_never_given_to_other_content) {
  ScopeTable table;
  const ScopeRef kept = table.intern(numbered(0)).value();
  std::vector<uint32_t> serials;
  for (int i = 1; i < 3000; ++i) serials.push_back(table.intern(numbered(i)).value().serial());
  std::sort(serials.begin(), serials.end());
  EXPECT_EQ(std::unique(serials.begin(), serials.end()), serials.end());
  EXPECT_EQ(table.find(kept.serial()), kept.layer());
  EXPECT_EQ(table.find(serials.front()), nullptr);
  EXPECT_NE(table.find(serials.back()), nullptr);
}

TEST(ScopeTable, a_scope_outlives_its_table) {
  ScopeRef scope;
  {
    ScopeTable table;
    scope = table.intern({.require = {"reference"}}).value();
  }
  EXPECT_EQ(ranked_in(scope), "reference");
}

TEST(NestedScope, the_innermost_ordering_wins) {
  ScopeTable table;
  const ScopeRef outer = table.intern({.prefer = {"reference"}, .strict = true}).value();
  const ScopeRef inner = table.nest(outer, {.prefer = {"vendor"}}).value();
  EXPECT_EQ(ranked_in(outer), "reference simd acme onednn");
  EXPECT_EQ(ranked_in(inner), "acme onednn simd reference");
  EXPECT_TRUE(Bench({{Source::scope, inner.layer()->policy()}}).view().strict);
}

TEST(NestedScope, the_innermost_general_field_beats_a_rule_outside) {
  ScopeTable table;
  const ScopeRef outer = table.intern({.rules = {{.prefer = {"reference"}, .rank = 1000}}}).value();
  EXPECT_EQ(ranked_in(table.nest(outer, {.prefer = {"vendor"}}).value()),
            "acme onednn simd reference");
}

TEST(NestedScope, constraints_add_up) {
  ScopeTable table;
  const ScopeRef outer = table.intern({.deny = {"vendor:acme"}}).value();
  EXPECT_EQ(ranked_in(table.nest(outer, {.deny = {"default"}}).value()), "onednn reference");
}

TEST(NestedScope, requires_intersect) {
  ScopeTable table;
  const ScopeRef outer = table.intern({.require = {"vendor", "reference"}}).value();
  EXPECT_EQ(ranked_in(table.nest(outer, {.require = {"vendor:intel", "default"}}).value()),
            "onednn");
}

TEST(NestedScope, an_outer_order_still_excludes) {
  ScopeTable table;
  const ScopeRef outer = table.intern({.per_op = {{"norm", {"default", "reference"}}}}).value();
  EXPECT_EQ(ranked_in(table.nest(outer, {.prefer = {"reference"}}).value()), "reference simd");
}

TEST(NestedScope, the_same_scope_again_is_the_same_scope) {
  ScopeTable table;
  const Policy a{.prefer = {"vendor"}}, b{.strict = true};
  const ScopeRef once = table.intern(a).value();
  EXPECT_EQ(table.nest(once, a).value().serial(), once.serial());
  EXPECT_EQ(table.nest(once, {}).value().serial(), once.serial());
  EXPECT_EQ(table.nest({}, a).value().serial(), once.serial());
  // Alternating recursion does not grow without bound either.
  ScopeRef scope = once;
  std::vector<uint32_t> serials;
  for (int i = 0; i < 10; ++i) {
    scope = table.nest(scope, i % 2 == 0 ? b : a).value();
    serials.push_back(scope.serial());
  }
  EXPECT_EQ(serials[2], serials[0]);
  EXPECT_EQ(serials[9], serials[1]);
}

TEST(NestedScope, combine_keeps_both_policies_as_they_were) {
  const Policy outer{.prefer = {"vendor"}}, inner{.strict = true};
  const Policy both = combine(outer, inner);
  EXPECT_EQ(both.strict, true);
  ASSERT_NE(both.outer, nullptr);
  EXPECT_EQ(both.outer->prefer, outer.prefer);
  EXPECT_TRUE(combine({}, {}).empty());
  EXPECT_EQ(combine(outer, {}).prefer, outer.prefer);
}

TEST(NestedScope, combine_keeps_policies_that_differ_in_the_breaker_of_a_rule) {
  const auto with = [](std::string impl, BreakerOptions breaker) {
    return Policy{.rules = {{.op = "norm", .impl = std::move(impl), .breaker = breaker}}};
  };
  const Policy one = with("norm/acme.*", {.window = 7});
  for (const Policy& other : {with("norm/acme.*", {.window = 8}), with("norm/acme.*", {}),
                              with("norm/simd.*", {.window = 7}), with("", {.window = 7})}) {
    const Policy both = combine(one, other);
    ASSERT_NE(both.outer, nullptr);
    EXPECT_EQ(both.rules.front().breaker, other.rules.front().breaker);
    EXPECT_EQ(both.outer->rules.front().impl, "norm/acme.*");
  }
  EXPECT_EQ(combine(one, one).outer, nullptr);
}

TEST(ScopeTable, threads_agree_on_numbers) {
  ScopeTable table;
  constexpr int kRounds = 500, kScopes = 16;
  std::vector<std::vector<uint32_t>> seen(4, std::vector<uint32_t>(kScopes));
  std::atomic<int> mistakes{0};
  std::vector<ScopeRef> kept;
  for (int i = 0; i < kScopes; ++i) kept.push_back(table.intern(numbered(i)).value());
  std::vector<std::thread> threads;
  for (auto& serials : seen) {
    threads.emplace_back([&table, &serials, &mistakes] {
      for (int i = 0; i < kRounds; ++i) {
        const ScopeRef scope = table.intern(numbered(i % kScopes)).value();
        serials[i % kScopes] = scope.serial();
        if (table.find(scope.serial()) != scope.layer()) ++mistakes;
        (void)table.intern(numbered(kScopes + i % 100)).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mistakes, 0);
  for (const auto& serials : seen) EXPECT_EQ(serials, seen.front());
  EXPECT_EQ(table.alive(), static_cast<size_t>(kScopes));
}

TEST(ScopeTable, a_forked_child_goes_on_while_the_parent_is_busy) {
  ScopeTable table;
  const ScopeRef scope = table.intern({.prefer = {"vendor"}}).value();
  std::atomic<bool> done{false};
  std::thread busy([&] {
    for (int i = 0; !done; ++i) (void)table.intern(numbered(i % 2000)).value();
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(test::true_in_forked_child([&] {
      const auto again = table.intern({.prefer = {"vendor"}});
      return again && again->serial() == scope.serial() &&
             table.find(scope.serial()) == scope.layer() &&
             table.intern({.prefer = {"reference"}}).has_value();
    }));
  }
  done = true;
  busy.join();
}

}  // namespace
}  // namespace opmux::policy
