#include <algorithm>
#include <stdexcept>

#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;

/// copy with three implementations; a.x is chosen, b.x takes only multiples of 16.
struct SelectorTest : testing::Test {
  SelectorTest() : stage(options()) {
    copy = stage.define(kCopy);
    stage.add({.id = "copy/a.x", .kind = Kind::default_, .priority = 200});
    stage.add({.id = "copy/b.x",
               .kind = Kind::default_,
               .priority = 100,
               .caps = Caps{}.multiple_of("H", 16)});
    stage.add({.id = "copy/c.x", .kind = Kind::default_, .priority = 50});
  }
  Options options() {
    Options made = bare();
    made.sink = [this](const Event& event) { codes += event.code + " "; };
    return made;
  }
  std::string runs(Rows& t) {
    return ran_by([&] { EXPECT_TRUE((*copy)(t.y, t.x).ok()); });
  }

  std::string codes;
  Rows wide{2, 32}, narrow{2, 8};
  Stage stage;
  std::optional<Operator> copy;
};

/// The index of an implementation among the accepted candidates.
std::optional<size_t> place_of(std::span<const Candidate> accepted, const std::string& id) {
  const auto at = std::ranges::find(accepted, id, &Candidate::id);
  if (at == accepted.end()) return std::nullopt;
  return static_cast<size_t>(at - accepted.begin());
}

TEST_F(SelectorTest, picks_another_one_of_the_accepted_and_explain_names_it) {
  ASSERT_TRUE(stage.runtime
                  .set_selector([](std::span<const Candidate> accepted) {
                    return place_of(accepted, "copy/b.x");
                  })
                  .ok());
  EXPECT_EQ(runs(wide), "copy/b.x");
  EXPECT_EQ(runs(narrow), "copy/a.x");  // b.x is refused there, so the selector picks nothing.
  const Explanation why = copy->explain(wide.y, wide.x);
  EXPECT_EQ(why.chosen, "copy/b.x");
  EXPECT_THAT(why.candidates[0].reason, HasSubstr("picked by the selector"));
  EXPECT_EQ(why.candidates[1].id, "copy/a.x");
  ASSERT_TRUE(stage.runtime.reset_selector().ok());
  EXPECT_EQ(runs(wide), "copy/a.x");
}

TEST_F(SelectorTest, sees_the_facts_that_it_declares_and_calls_differ_by_them) {
  std::vector<std::string> seen;
  const Selector by_rows{
      .name = "by_rows",
      .reads = {"rows", "dtype(x)", "HQ"},
      .pick = [&](const Selection& asked) -> std::optional<size_t> {
        seen.push_back(std::string(asked.op) + " " + asked.facts[0].text + " " +
                       asked.facts[1].text + " " + (asked.facts[2].number ? "HQ" : "no HQ"));
        return *asked.facts[0].number > 4 ? std::optional<size_t>(1) : std::nullopt;
      }};
  ASSERT_TRUE(stage.runtime.set_selector(by_rows).ok());
  Rows few{2, 8}, many{8, 8};
  EXPECT_EQ(runs(few), "copy/a.x");
  EXPECT_EQ(runs(many), "copy/c.x");
  EXPECT_EQ(runs(few), "copy/a.x");
  EXPECT_EQ(seen, (std::vector<std::string>{"copy 2 f32 no HQ", "copy 8 f32 no HQ"}));
}

TEST_F(SelectorTest, a_failing_selector_keeps_the_choice_and_is_logged) {
  ASSERT_TRUE(
      stage.runtime
          .set_selector([](std::span<const Candidate>) -> std::optional<size_t> { return 9; })
          .ok());
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_THAT(codes, HasSubstr("selector.failed"));
  codes.clear();
  ASSERT_TRUE(stage.runtime
                  .set_selector([](std::span<const Candidate>) -> std::optional<size_t> {
                    throw std::runtime_error("oh");
                  })
                  .ok());
  EXPECT_EQ(runs(wide), "copy/a.x");
  EXPECT_THAT(codes, HasSubstr("selector.failed"));
}

TEST_F(SelectorTest, is_refused_without_a_function_for_unknown_facts_and_when_frozen) {
  EXPECT_EQ(stage.runtime.set_selector(Selector{}).reason(), "selector.function");
  Selector selector;
  selector.pick = [](const Selection&) { return std::optional<size_t>(); };
  selector.reads = {"dytpe(x)"};
  EXPECT_EQ(stage.runtime.set_selector(selector).reason(), "selector.reads");
  ASSERT_TRUE(stage.runtime.lockfile().freeze());
  selector.reads = {};
  EXPECT_EQ(stage.runtime.set_selector(selector).code(), Code::frozen);
  EXPECT_EQ(stage.runtime.reset_selector().code(), Code::frozen);
}

TEST_F(SelectorTest, what_it_picked_is_locked_by_freezing) {
  ASSERT_TRUE(stage.runtime
                  .set_selector([](std::span<const Candidate> accepted) {
                    return place_of(accepted, "copy/c.x");
                  })
                  .ok());
  EXPECT_EQ(runs(wide), "copy/c.x");
  EXPECT_EQ(stage.runtime.lockfile().freeze().value().choices.at(0).implementation, "copy/c.x");
  EXPECT_EQ(runs(wide), "copy/c.x");
}

}  // namespace
}  // namespace opmux::test
