#include <gmock/gmock.h>

#include <algorithm>

#include "stage.hpp"

/// Ambient facts in rules and verifiers, and verifiers that read something besides facts.
namespace opmux::test {
namespace {

Options with_events(std::vector<Event>& events) {
  Options options = bare();
  options.sources.own_thread = false;
  options.sink = [&events](const Event& event) { events.push_back(event); };
  return options;
}

struct AmbientFacts : testing::Test {
  std::string ran() const {
    std::vector<float> memory(8);
    const TensorView y(memory.data(), f32, {8}), x(memory.data(), f32, {8});
    return ran_by([&] { EXPECT_TRUE(op(y, x).ok()); });
  }
  std::vector<std::string> depends_on() const {
    std::vector<float> memory(8);
    const TensorView y(memory.data(), f32, {8}), x(memory.data(), f32, {8});
    return op.explain(y, x).depends_on;
  }

  std::vector<Event> events;
  Stage stage{with_events(events)};
  const Operator op = stage.define(kCopy);
};

TEST_F(AmbientFacts, rules_read_inference_and_autocast) {
  stage.add({.id = "copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  Policy policy;
  policy.rules = {{.op = "copy", .when = Condition::ambient("inference"), .deny = {"default"}}};
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  EXPECT_EQ(ran(), "copy/fast.one");
  {
    const AmbientScope inference({.inference = true});
    EXPECT_EQ(ran(), "copy/plain.one");
  }
  EXPECT_EQ(ran(), "copy/fast.one");
  ASSERT_TRUE(stage.runtime.policy()
                  .load("opmux: 1\nrules:\n  - op: copy\n    when: autocast\n    deny: [default]\n",
                        "policy.yaml")
                  .ok());
  const AmbientScope autocast({.autocast = true});
  EXPECT_EQ(ran(), "copy/plain.one");
}

TEST_F(AmbientFacts, of_an_argument_with_that_name_stay_the_argument) {
  const Operator own = stage.define("scan(out Tensor y[N], Tensor x[N], bool inference = false)");
  stage.add({.id = "scan/fast.one", .kind = Kind::default_});
  stage.add({.id = "scan/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(
      stage.runtime.policy()
          .load("opmux: 1\nrules:\n  - op: scan\n    when: inference\n    deny: [default]\n",
                "policy.yaml")
          .ok());
  std::vector<float> memory(8);
  const TensorView y(memory.data(), f32, {8}), x(memory.data(), f32, {8});
  const AmbientScope around({.inference = true});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(own(y, x, false).ok()); }), "scan/fast.one");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(own(y, x, true).ok()); }), "scan/plain.one");
}

TEST_F(AmbientFacts, a_verifier_that_reads_besides_facts_is_asked_for_every_call) {
  bool flag = true;
  int asked = 0;
  stage.add({.id = "copy/fast.one",
             .kind = Kind::default_,
             .verify = [&](const Facts& facts) -> std::string {
               ++asked;
               facts.outside("ACME_FLAG");
               return flag ? "" : "ACME_FLAG is off";
             }});
  stage.add({.id = "copy/plain.one", .kind = Kind::reference});
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_EQ(asked, 2);
  flag = false;
  EXPECT_EQ(ran(), "copy/plain.one");
  flag = true;
  EXPECT_EQ(ran(), "copy/fast.one");
  const auto is_uncached = [](const Event& event) {
    return event.code == "dispatch.decided_each_time";
  };
  ASSERT_EQ(std::ranges::count_if(events, is_uncached), 1);
  const Event& event = *std::ranges::find_if(events, is_uncached);
  EXPECT_EQ(event.impl, "copy/fast.one");
  EXPECT_THAT(event.text, testing::HasSubstr("ACME_FLAG"));
  EXPECT_THAT(depends_on(), testing::Contains("ACME_FLAG"));
}

}  // namespace
}  // namespace opmux::test
