#include <gmock/gmock.h>

#include "stage.hpp"

/// Policies in code and in the environment that name an operator which does not exist.
namespace opmux::test {
namespace {

using testing::HasSubstr;

/// The events "policy.op" of a runtime that is created with these options.
std::vector<Event> events_of(Options options) {
  std::vector<Event> events;
  options.sink = [&](const Event& event) {
    if (event.code == "policy.op") events.push_back(event);
  };
  EXPECT_TRUE(Runtime::create(options));
  return events;
}

TEST(MisspeltOperator, in_the_environment_is_logged_and_shown) {
  // The example in the documentation of vllm-plugin-FL.
  const Variables variables{{"OPMUX_PER_OP", "rmsnorm=vendor|reference"}};
  const std::vector<Event> events = events_of(bare(variables));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].level, Level::warning);
  EXPECT_EQ(events[0].op, "rmsnorm");
  EXPECT_THAT(events[0].text, HasSubstr("OPMUX_PER_OP: per_op rmsnorm: there is no operator"));
  EXPECT_THAT(events[0].text, HasSubstr("did you mean 'rms_norm'?"));
  const Stage stage(bare(variables));
  EXPECT_THAT(setting(stage.runtime, "order.rmsnorm"), HasSubstr("did you mean 'rms_norm'?"));
}

TEST(MisspeltOperator, of_the_environment_may_be_defined_later) {
  const Variables variables{{"OPMUX_PER_OP", "my_copy=reference"}};
  const std::vector<Event> events = events_of(bare(variables));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].level, Level::info);
  Stage stage(bare(variables));
  const Operator op = stage.define("my_copy(out Tensor y[N], Tensor x[N])");
  stage.add({.id = "my_copy/fast.one", .kind = Kind::default_});
  stage.add({.id = "my_copy/plain.one", .kind = Kind::reference});
  std::vector<float> memory(8);
  const TensorView y(memory.data(), f32, {8}), x(memory.data(), f32, {8});
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(y, x).ok()); }), "my_copy/plain.one");
  EXPECT_EQ(setting(stage.runtime, "order.my_copy").find("there is no"), std::string::npos);
}

TEST(MisspeltOperator, in_code_is_refused) {
  Stage stage;
  Policy order;
  order.per_op["rmsnorm"] = {"vendor"};
  const Status refused = stage.runtime.policy().set(order);
  EXPECT_EQ(refused.reason(), "policy.op");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("did you mean 'rms_norm'?"));
  Policy rule;
  rule.rules = {{.name = "fast", .op = "rmsnorm", .prefer = {"vendor"}}};
  const Status bad_rule = stage.runtime.policy().set(rule);
  EXPECT_EQ(bad_rule.reason(), "policy.op");
  EXPECT_THAT(std::string(bad_rule.message()), HasSubstr("rule \"fast\": op: there is no"));
  const PolicyScope scope(stage.runtime, order);
  EXPECT_EQ(scope.status().reason(), "policy.op");
}

TEST(MisspeltOperator, of_a_vendor_counts_as_known) {
  Stage stage;
  Policy policy;
  policy.per_op["acme.twice"] = {"vendor"};
  EXPECT_TRUE(stage.runtime.policy().set(policy).ok());
}

TEST(MisspeltOperator, in_options_is_logged) {
  Options options = bare();
  options.policy.rules = {{.op = "softmx", .deny = {"vendor"}}};
  const std::vector<Event> events = events_of(options);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].text, HasSubstr("Options::policy: rule 1: op: there is no operator"));
}

}  // namespace
}  // namespace opmux::test
