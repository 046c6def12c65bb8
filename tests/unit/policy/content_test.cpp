#include "policy/rules/policy_set.hpp"

#include <set>

#include <gtest/gtest.h>

namespace opmux::policy {
namespace {

template <class Add>
std::string bytes(const Add& add) {
  ContentWriter writer;
  add(writer);
  return writer.bytes();
}

TEST(Content, of_conditions_that_differ_in_one_thing_differs) {
  const Condition all[] = {
      Condition::present("x"),
      Condition::contiguous("x"),
      Condition::present("w"),
      Condition::dim("x", Compare::less, 8),
      Condition::dim("x", Compare::greater, 8),
      Condition::dim("x", Compare::less, 9),
      Condition::layout("x", "01"),
      Condition::layout("x", "10"),
      Condition::present("x") && Condition::present("w"),
      Condition::present("x") || Condition::present("w"),
      !Condition::present("x"),
  };
  std::set<std::string> contents;
  for (const Condition& condition : all) {
    contents.insert(bytes([&](ContentWriter& writer) { writer.add(condition); }));
  }
  EXPECT_EQ(contents.size(), std::size(all));
}

TEST(Content, of_rules_that_differ_in_one_effect_differs) {
  const Rule all[] = {
      {},
      {.when = Condition::present("x")},
      {.require = {"a"}},
      {.prefer = {"a"}},
      {.order = {"a"}},
      {.deny = {"a"}},
      {.deny = {"a", "b"}},
      {.deny = {"ab"}},
      {.allow = {"a"}},
      {.boost = {{"a", 1.0, 1}}},
      {.boost = {{"a", 2.0, 1}}},
      {.strict = true},
      {.strict = false},
  };
  std::set<std::string> contents;
  for (const Rule& rule : all) {
    contents.insert(bytes([&](ContentWriter& writer) { writer.add_effect(rule); }));
  }
  EXPECT_EQ(contents.size(), std::size(all));
}

TEST(Content, of_a_rule_does_not_speak_of_its_name) {
  Rule a{.deny = {"a"}}, b = a;
  b.name = "other";
  EXPECT_EQ(bytes([&](ContentWriter& writer) { writer.add_effect(a); }),
            bytes([&](ContentWriter& writer) { writer.add_effect(b); }));
}

}  // namespace
}  // namespace opmux::policy
