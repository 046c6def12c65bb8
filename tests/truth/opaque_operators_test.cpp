// Functions of a language binding are opaque operators: the engine decides, asks breakers and
// counts, and the binding runs.
#include <opmux/detail/opaque_call.hpp>

#include <algorithm>
#include <functional>
#include <map>

#include "stage.hpp"

namespace opmux::test {
namespace {

using dispatch::OpaqueDecision;
using dispatch::OpaqueOutcome;

/// A binding with two functions, `scan/fast.one` and the body `scan/own.body`.
struct Binding : Stage, dispatch::OpaqueRunner {
  explicit Binding(uint32_t flags = OPMUX_IMPL_ATOMIC_OUTPUTS) {
    EXPECT_TRUE(runtime.define("#! opaque\nscan(Tensor? q, Tensor? k)").ok());
    implement("scan/fast.one", Kind::vendor, flags);
    implement("scan/own.body", Kind::reference, 0);
    functions["scan/own.body"] = [] { return OpaqueOutcome{}; };
  }

  void implement(const std::string& id, Kind kind, uint32_t flags) {
    Implementation made{.id = id, .kind = kind, .vendor = kind == Kind::vendor ? "acme" : ""};
    made.caps.device(0);
    made.flags = flags;
    made.run = [](CallFrame&) { return Outcome::declined; };
    registrations.push_back(runtime.implement(made).value());
  }

  OpaqueOutcome run(const std::string& id) override {
    ran.push_back(id);
    return functions[id] ? functions[id]() : OpaqueOutcome{};
  }

  dispatch::OperatorSlot& slot() { return runtime.op("scan").value().slot(); }

  OpaqueDecision decide(const TensorView& q = {}) {
    const ArgValue values[] = {{&q}};
    return dispatch::decide_opaque(slot(), CallSite{ArgTag::tensor}, values, 0).value();
  }
  Status call(const OpaqueDecision& decision, const OpaqueOutcome* failed = nullptr,
              const TensorView& q = {}) {
    const ArgValue values[] = {{&q}};
    return dispatch::run_opaque(slot(), decision, CallSite{ArgTag::tensor}, values, *this, failed,
                                &report);
  }
  Status call() { return call(decide()); }

  std::vector<Registration> registrations;
  std::map<std::string, std::function<OpaqueOutcome()>> functions;
  std::vector<std::string> ran;
  CallReport report;
};

OpaqueOutcome fail() { return {Code::failed, "no luck"}; }

TEST(OpaqueOperators, a_failing_function_rests_instead_of_being_tried_each_time) {
  Binding binding;
  binding.functions["scan/fast.one"] = fail;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(binding.call().ok());
  EXPECT_EQ(std::ranges::count(binding.ran, "scan/fast.one"), 5);
  EXPECT_EQ(std::ranges::count(binding.ran, "scan/own.body"), 50);
  const HealthReport health = binding.runtime.health().report();
  ASSERT_EQ(health.breakers.size(), 1u);
  EXPECT_EQ(health.breakers[0].implementation, "scan/fast.one");
  EXPECT_EQ(binding.stats("scan/fast.one").failed, 5u);
  EXPECT_EQ(binding.stats("scan/own.body").calls, 50u);
}

TEST(OpaqueOperators, an_isolated_function_does_not_run) {
  Binding binding;
  const OpaqueDecision before = binding.decide();
  EXPECT_EQ(before.first, "scan/fast.one");
  EXPECT_TRUE(before.direct && before.is_current());
  ASSERT_TRUE(binding.runtime.health().force_breaker("scan/fast.one", BreakerForce::isolate).ok());
  EXPECT_FALSE(before.is_current());
  EXPECT_EQ(binding.decide().first, "scan/own.body");
}

TEST(OpaqueOperators, what_the_binding_ran_is_counted_and_armed) {
  Binding binding;
  const OpaqueDecision decision = binding.decide();
  decision.calls->fetch_add(1);
  EXPECT_EQ(binding.stats("scan/fast.one").calls, 1u);
  const OpaqueOutcome failed = fail();
  EXPECT_TRUE(binding.call(decision, &failed).ok());
  EXPECT_EQ(binding.ran, std::vector<std::string>{"scan/own.body"});
  EXPECT_EQ(binding.report.implementation, "scan/own.body");
  EXPECT_TRUE(binding.report.fell_back);
  EXPECT_FALSE(decision.is_current()) << "the breaker is armed";
  EXPECT_FALSE(binding.decide().direct) << "each call asks the breaker";
}

TEST(OpaqueOperators, another_function_runs_after_a_failure_only_if_the_first_is_pure) {
  Binding binding(0);
  binding.functions["scan/fast.one"] = fail;
  EXPECT_EQ(binding.call().code(), Code::failed);
  EXPECT_EQ(binding.ran, std::vector<std::string>{"scan/fast.one"});
  binding.functions["scan/fast.one"] = [] { return OpaqueOutcome{Code::declined, "not this"}; };
  EXPECT_TRUE(binding.call().ok());
}

TEST(OpaqueOperators, an_interrupt_ends_the_call_and_is_no_failure) {
  Binding binding;
  binding.functions["scan/fast.one"] = [] { return OpaqueOutcome{Code::declined, "stop", true}; };
  EXPECT_FALSE(binding.call().ok());
  EXPECT_EQ(binding.ran, std::vector<std::string>{"scan/fast.one"});
  EXPECT_EQ(binding.stats("scan/fast.one").declined, 0u);
}

TEST(OpaqueOperators, rules_decide_by_the_tensors_that_the_binding_shows) {
  Binding binding;
  Rule rule;
  rule.op = "scan";
  rule.when = Condition::dtype("q", f32);
  rule.deny = {"scan/fast.*"};
  Policy policy;
  policy.rules.push_back(rule);
  ASSERT_TRUE(binding.runtime.policy().set(policy).ok());
  float data[4] = {};
  const TensorView single(data, f32, {4}), half(data, f16, {4});
  EXPECT_EQ(binding.decide(single).first, "scan/own.body");
  const OpaqueDecision decision = binding.decide(half);
  EXPECT_EQ(decision.first, "scan/fast.one");
  ASSERT_TRUE(decision.cacheable);
  ASSERT_EQ(decision.facts.size(), 1u);
  EXPECT_EQ(decision.facts[0].kind, uint32_t{OPMUX_FACT_DTYPE});
  EXPECT_EQ(decision.facts[0].argument, 0u);
}

TEST(OpaqueOperators, functions_may_call_each_other_to_any_depth) {
  Binding binding;
  int depth = 0;
  binding.functions["scan/fast.one"] = [&] {
    if (++depth < 30) {
      EXPECT_TRUE(binding.call().ok());
    }
    return OpaqueOutcome{};
  };
  EXPECT_TRUE(binding.call().ok());
  EXPECT_EQ(depth, 30);
}

TEST(OpaqueOperators, only_the_binding_can_call_them) {
  Binding binding;
  const Operator op = binding.runtime.op("scan").value();
  EXPECT_EQ(op(none).reason(), "call.opaque");
  EXPECT_EQ(op.bind(none).error().reason(), "call.opaque");
  EXPECT_TRUE(binding.ran.empty());
}

}  // namespace
}  // namespace opmux::test
