#include "policy/policy_diff.hpp"

#include "stage.hpp"

namespace opmux::test {
namespace {

struct PolicyDiffTest : testing::Test {
  PolicyDiffTest() {
    stage.define(kCopy);
    stage.add({.id = "copy/a.x", .kind = Kind::default_, .priority = 200});
    stage.add({.id = "copy/b.x", .kind = Kind::default_, .priority = 100});
    stage.add({.id = "copy/c.x", .kind = Kind::default_, .priority = 50});
  }
  /// "op: from -> to (because), when" for each change between two lists of rules.
  std::vector<std::string> changes(const std::string& from, const std::string& to) {
    const auto found = stage.runtime.policy().compare("opmux: 1\nrules: [" + from + "]\n", "old",
                                                      "opmux: 1\nrules: [" + to + "]\n", "new");
    if (!found) return {std::string(found.error().message())};
    std::vector<std::string> texts;
    for (const ChoiceChange& change : *found) {
      EXPECT_EQ(change.when, "always");
      texts.push_back(change.from + " -> " + change.to + " by " + change.because);
    }
    return texts;
  }
  Stage stage;
};

TEST_F(PolicyDiffTest, names_the_rule_that_changes_a_choice) {
  using testing::ElementsAre;
  const std::string prefer_b = "{name: p, op: copy, prefer: [copy/b.x]}";
  EXPECT_THAT(changes("", prefer_b), ElementsAre("copy/a.x -> copy/b.x by \"p\" (new:2)"));
  EXPECT_THAT(changes(prefer_b, ""),
              ElementsAre("copy/b.x -> copy/a.x by no longer \"p\" (old:2)"));
  EXPECT_THAT(changes("", "{name: d, op: copy, deny: [copy/a.x]}"),
              ElementsAre("copy/a.x -> copy/b.x by \"d\" (new:2)"));
  EXPECT_THAT(changes("{name: d, op: copy, deny: [copy/a.x]}", ""),
              ElementsAre("copy/b.x -> copy/a.x by no longer \"d\" (old:2)"));
  EXPECT_THAT(changes("", "{name: r, op: copy, require: [copy/c.x]}"),
              ElementsAre("copy/a.x -> copy/c.x by \"r\" (new:2)"));
  EXPECT_THAT(changes("", "{name: s, op: copy, boost: [{impl: copy/c.x, add: 500}]}"),
              ElementsAre("copy/a.x -> copy/c.x by \"s\" (new:2)"));
}

TEST_F(PolicyDiffTest, omits_unchanged_choices_and_refuses_inapplicable_texts) {
  const std::string strict = "{op: copy, strict: true}";
  EXPECT_TRUE(changes("", strict).empty());
  EXPECT_TRUE(changes(strict, strict).empty());
  EXPECT_THAT(changes("", "{op: cpoy, strict: true}")[0], testing::HasSubstr("new:2:"));
  EXPECT_EQ(stage.runtime.policy().state().loaded + stage.runtime.policy().state().refused, 0u);
}

}  // namespace
}  // namespace opmux::test
