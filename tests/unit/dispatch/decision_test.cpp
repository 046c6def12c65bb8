#include "dispatch/decide/evaluation.hpp"

#include <gmock/gmock.h>

#include <map>

#include "drafts.hpp"
#include "policy/rules/policy_set.hpp"
#include "stage.hpp"

namespace opmux::test {
namespace {

/// Measured speeds of implementations of norm, compared with the first one of them.
struct Measured {
  std::shared_ptr<const tune::RowIndex> rows_for(const registry::OperatorRecord& op) const {
    std::vector<tune::TuningRow> rows;
    const auto build = [](const std::string& id) {
      return tune::Build{id.substr(id.find('/') + 1), ""};
    };
    for (const auto& [id, speed] : speeds) {
      if (id == speeds.begin()->first) continue;
      tune::TuningRow& row = rows.emplace_back();
      row.cell = {"f32,f32", {{"H", 8}}, 1, false};
      row.range = {"rows", 1, 100};
      row.implementation = build(id);
      row.baseline = build(speeds.begin()->first);
      row.log_ratio = speed.log_ratio;
      row.low = speed.low;
      row.high = speed.high;
    }
    tune::RowIndex::Section section{&rows, {}, {}};
    return tune::RowIndex::compile(op, {&section, 1});
  }
  std::map<std::string, tune::MeasuredSpeed> speeds;
};

class Ill final : public health::HealthView {
 public:
  Answer ask(const registry::ImplementationRecord& implementation, const schema::Signature&,
             bool) const override {
    if (implementation.id != open) return {};
    return {registry::Reason::health_open, "it rests"};
  }
  bool on_outcome(const registry::ImplementationRecord&, const schema::Signature&, Code,
                  const health::Pass&) override {
    return false;
  }
  std::string open;
};

struct DecisionTest : testing::Test {
  DecisionTest() {
    EXPECT_TRUE(registry.define(kNorm).ok());
    for (const char* name : {"aaa", "bbb", "ccc"}) {
      EXPECT_TRUE(registry.add(batch_of(name, {draft("norm", "one")}), true).refused.empty());
    }
    op = registry.snapshot()->operators.find("norm")->second;
    ArgValue values[2];
    values[0].tensor = &t.y;
    values[1].tensor = &t.x;
    EXPECT_TRUE(
        normalise(*op->schema, CallSite{ArgTag::tensor, ArgTag::tensor}, values, arguments).ok());
    EXPECT_TRUE(check_arguments(*op->schema, arguments, dims).ok());
  }
  schema::Signature signature() const {
    return {op->schema.get(), &arguments, &dims, 0, 0, nullptr, 1};
  }
  dispatch::Evaluation decide(const Policy& policy = {}) {
    policy::PolicySet set;
    set.layers = {policy::PolicyLayer::make(policy::Source::code, policy, "test").value()};
    compiled = policy::OperatorPolicy::compile(set, nullptr, op);
    input = {op.get(), compiled.get(), &health, tuning.rows_for(*op), false};
    dispatch::Evaluation decision;
    dispatch::decide(input, signature(), decision);
    return decision;
  }
  static std::vector<std::string> order(const dispatch::Evaluation& decision) {
    std::vector<std::string> ids;
    for (const uint16_t i : decision.order) ids.push_back(decision.verdicts[i].implementation->id);
    return ids;
  }
  registry::Registry registry;
  std::shared_ptr<const registry::OperatorRecord> op;
  std::shared_ptr<const policy::OperatorPolicy> compiled;
  dispatch::EvaluationInput input;
  const Rows t;
  schema::Arguments arguments;
  schema::BoundDims dims;
  Measured tuning;
  Ill health;
  TensorView there[2];
};

using testing::ElementsAre;

TEST_F(DecisionTest, equals_are_ordered_by_id) {
  EXPECT_THAT(order(decide()), ElementsAre("norm/aaa.one", "norm/bbb.one", "norm/ccc.one"));
}

TEST_F(DecisionTest, a_reused_decision_has_no_leftovers) {
  health.open = "norm/ccc.one";
  tuning.speeds = {{"norm/aaa.one", {}}, {"norm/bbb.one", {-0.7, -0.8, -0.6}}};
  dispatch::Evaluation decision =
      decide({.prefer = {"default"}, .deny = {"impl:norm/aaa.one"}, .strict = true});
  ASSERT_TRUE(decision.policy.has_list);
  input.disabled = true;
  dispatch::decide(input, signature(), decision);
  EXPECT_FALSE(decision.policy.has_list);
  EXPECT_FALSE(decision.policy.strict);
  for (const dispatch::CandidateVerdict& verdict : decision.verdicts) {
    EXPECT_TRUE(verdict.accepted());
    EXPECT_FALSE(verdict.tuned);
    EXPECT_EQ(verdict.text, "");
    EXPECT_EQ(verdict.by.layer, nullptr);
  }
}

TEST_F(DecisionTest, a_measured_speed_moves_a_faster_one_to_the_front) {
  tuning.speeds = {{"norm/aaa.one", {}}, {"norm/ccc.one", {-0.7, -0.8, -0.6}}};
  const dispatch::Evaluation decision = decide();
  EXPECT_THAT(order(decision), ElementsAre("norm/ccc.one", "norm/aaa.one", "norm/bbb.one"));
  EXPECT_TRUE(decision.verdicts[decision.order[0]].tuned);
  tuning.speeds["norm/ccc.one"] = {-0.02, -0.05, 0.01};
  EXPECT_THAT(order(decide()), ElementsAre("norm/aaa.one", "norm/bbb.one", "norm/ccc.one"));
}

TEST_F(DecisionTest, measured_speeds_do_not_cross_a_preference) {
  tuning.speeds = {{"norm/aaa.one", {}}, {"norm/ccc.one", {-0.7, -0.8, -0.6}}};
  EXPECT_THAT(order(decide({.prefer = {"impl:norm/aaa.one"}})),
              ElementsAre("norm/aaa.one", "norm/bbb.one", "norm/ccc.one"));
}

TEST_F(DecisionTest, facts_that_tuning_reads_are_dependencies) {
  tuning.speeds = {{"norm/aaa.one", {}}, {"norm/ccc.one", {-0.7, -0.8, -0.6}}};
  (void)decide();
  const auto facts = dispatch::dependencies_of(input).facts();
  EXPECT_THAT(facts, testing::Contains(*resolve_fact(*op->schema, schema::FactKind::dim, "H")));
  EXPECT_THAT(facts, testing::Contains(schema::Fact{schema::FactKind::threads, 0}));
  tuning.speeds.clear();
  (void)decide();
  EXPECT_THAT(dispatch::dependencies_of(input).lookups(), testing::IsEmpty());
}

TEST_F(DecisionTest, unhealthy_candidates_are_refused_with_their_reason) {
  health.open = "norm/aaa.one";
  const dispatch::Evaluation decision = decide();
  EXPECT_THAT(order(decision), ElementsAre("norm/bbb.one", "norm/ccc.one"));
  EXPECT_EQ(decision.verdicts[0].reason, registry::Reason::health_open);
  EXPECT_EQ(dispatch::describe(decision.verdicts[0], signature()), "it rests");
}

TEST_F(DecisionTest, a_backend_of_another_device_is_refused_without_being_asked) {
  int probes = 0;
  registry::Batch distant = batch_of("distant", {draft("norm", "one")});
  distant.implementations[0].caps.device(OPMUX_DEVICE_OPENCL);
  distant.backend.probe = [&]() -> std::optional<std::string> { return ++probes, "no driver"; };
  ASSERT_TRUE(registry.add(distant, true).refused.empty());
  op = registry.snapshot()->operators.find("norm")->second;
  EXPECT_EQ(decide().verdicts[3].reason, registry::Reason::caps_device);
  EXPECT_EQ(probes, 0);
  for (const int position : {0, 1}) {
    const TensorView* const here = arguments.values[position].tensor;
    there[position] = TensorView(here->data(), f32, here->shape(), {}, {OPMUX_DEVICE_OPENCL, 0});
    arguments.values[position].tensor = &there[position];
  }
  EXPECT_EQ(decide().verdicts[3].reason, registry::Reason::backend_unavailable);
  EXPECT_EQ(probes, 1);
}

TEST_F(DecisionTest, without_candidates_the_error_names_requirements_and_reasons) {
  const dispatch::Evaluation decision = decide({.require = {"reference"}});
  ASSERT_TRUE(decision.order.empty());
  const Status status = dispatch::nothing_left(input, decision, signature());
  EXPECT_EQ(status.code(), Code::no_candidate);
  const std::string text(status.message());
  EXPECT_NE(text.find("required by"), std::string::npos) << text;
  EXPECT_NE(text.find("norm/bbb.one: policy.outside_require"), std::string::npos) << text;
}

}  // namespace
}  // namespace opmux::test
