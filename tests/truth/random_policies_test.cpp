#include <cstdio>

#include "base/system/cpu_features.hpp"
#include "drawn_policy.hpp"
#include "stage.hpp"
#include "temporary_folder.hpp"

/// Random policies on simulated machines: check, load, reload, diff and explain give one answer,
/// and no policy comes into force that leaves an operator without a candidate.
namespace opmux::test {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kSeed = 20;
constexpr int kPolicies = 200;
constexpr const char* kEmpty = "opmux: 1\n";

/// A runtime on a machine without the masked features, with a policy file.
class SimulatedMachine {
 public:
  SimulatedMachine(const PolicyDraw& draw, const std::string& mask) : stage_(options(mask)) {
    for (const std::string& op : draw.operators)
      stage_.define(op + "(out Tensor y[..., H], Tensor x[..., H])");
    int priority = 100;
    for (const DrawnCandidate& one : draw.candidates) {
      stage_.add({.id = one.id(),
                  .kind = one.vendor ? Kind::vendor : Kind::default_,
                  .priority = priority = 100 + (priority * 7 + 31) % 100,
                  .caps = Caps{}.cpu_features(one.feature)});
    }
  }

  std::string config() const { return folder_.at("policy.yaml"); }
  PolicyControl policy() { return stage_.runtime.policy(); }
  Runtime& runtime() { return stage_.runtime; }

  /// Writes the policy file and runs the maintenance that reads it. Returns why it was refused.
  Status reload(const std::string& text) {
    const uint64_t refused = policy().state().refused;
    write_file(config(), text);
    for (int i = 0; i < 4; ++i) stage_.runtime.tick(milliseconds(now_ += 100));
    const PolicyState after = policy().state();
    return after.refused == refused ? Status() : after.last_refusal;
  }
  std::string chosen(const std::string& op, Rows& rows) {
    return stage_.runtime.op(op).value().explain(rows.y, rows.x).chosen;
  }
  std::string runs(const std::string& op, Rows& rows) {
    const Operator called = stage_.runtime.op(op).value();
    return ran_by([&] { (void)called(rows.y, rows.x); });
  }

 private:
  Options options(const std::string& mask) {
    write_file(config(), kEmpty);
    Variables variables{{"OPMUX_STATE_DIR", folder_.at("state")}};
    if (!mask.empty()) variables.emplace_back("OPMUX_CPU_MASK", mask);
    Options made = bare(std::move(variables));
    made.sources.config = config();
    made.sources.own_thread = false;
    return made;
  }

  TemporaryFolder folder_;
  Stage stage_;
  int now_ = 1000;
};

/// The conditions of a policy that are true for a call.
std::set<std::string> true_conditions(const DrawnPolicy& policy, const PlainModel& model,
                                      const std::string& op, int64_t rows, int64_t h) {
  std::set<std::string> all;
  for (const DrawnRule& rule : policy.rules) {
    if (rule.when.empty() || (rule.op != op && rule.op != "drawn_*")) continue;
    if (!model.possible(rule.when)) continue;
    const bool holds = rule.when.ends_with("H > 64")    ? h > 64
                       : rule.when.ends_with("H <= 64") ? h <= 64
                       : rule.when == "rows > 4"        ? rows > 4
                                                        : true;
    if (holds) all.insert(rule.when);
  }
  return all;
}

struct Counts {
  int accepted = 0, refused = 0, calls = 0, changes = 0;
};

/// Compares the answers about one policy on one machine.
class Comparison {
 public:
  Comparison(const PolicyDraw& draw, const DrawnMachine& features, SimulatedMachine& machine,
             Counts& counts)
      : draw_(draw), model_(draw, features), machine_(machine), counts_(counts) {}

  void compare(const DrawnPolicy& policy) {
    const std::string text = policy.text();
    SCOPED_TRACE(text);
    const auto checked = machine_.policy().check(text, machine_.config());
    const auto compared = machine_.policy().compare(kEmpty, "old.yaml", text, machine_.config());
    const std::string answer = checked.error().to_string();
    EXPECT_EQ(checked.has_value(), !model_.starves(policy)) << answer;
    EXPECT_EQ(checked.error().reason(), checked ? "" : "policy.no_candidates");
    EXPECT_EQ(compared.error().to_string(), answer);
    if (!policy.asks_for_features()) {
      const PolicyCheckOptions described{.machine = machine_.runtime().list()};
      EXPECT_EQ(elsewhere_.policy().check(text, machine_.config(), described).error().to_string(),
                answer);
    }
    const std::vector<std::string> before = choices();
    EXPECT_EQ(machine_.policy().load(text, machine_.config()).to_string(), answer);
    if (checked && compared) {
      ++counts_.accepted;
      same_changes(*checked, *compared);
      calls_follow(policy, *checked);
      EXPECT_TRUE(machine_.policy().load(kEmpty, machine_.config()).ok());
    } else {
      ++counts_.refused;
      EXPECT_EQ(choices(), before);
    }
    EXPECT_EQ(machine_.reload(text).to_string(), answer);
    if (checked) calls_follow(policy, *checked);
    EXPECT_TRUE(machine_.reload(kEmpty).ok());
    EXPECT_EQ(choices(), before);
  }

 private:
  std::vector<std::string> choices() {
    std::vector<std::string> all;
    for (const std::string& op : draw_.operators) all.push_back(machine_.chosen(op, small_));
    return all;
  }

  void same_changes(const PolicyCheck& checked, const std::vector<ChoiceChange>& compared) {
    const auto line = [](const std::string& op, const std::string& when, const std::string& from,
                         const std::string& to) {
      return op + " " + (when.empty() ? "always" : when) + " " + from + " -> " + to;
    };
    std::vector<std::string> by_check, by_diff;
    for (const DecisionChange& each : checked.changes)
      by_check.push_back(line(each.op, each.when, each.before, each.after));
    for (const ChoiceChange& each : compared)
      by_diff.push_back(line(each.op, each.when, each.from, each.to));
    EXPECT_EQ(by_check, by_diff);
    counts_.changes += static_cast<int>(by_diff.size());
  }

  /// Calls for which at most one condition is true run what was predicted.
  void calls_follow(const DrawnPolicy& policy, const PolicyCheck& checked) {
    for (const std::string& op : draw_.operators) {
      for (Rows* rows : {&small_, &wide_, &many_}) {
        const auto conditions = true_conditions(policy, model_, op, rows->x.dim(0), rows->x.dim(1));
        if (conditions.size() > 1) continue;
        const std::string when = conditions.empty() ? "" : *conditions.begin();
        const std::string chosen = machine_.chosen(op, *rows);
        ++counts_.calls;
        EXPECT_EQ(machine_.runs(op, *rows), chosen);
        const auto left = model_.left(policy, op, when);
        EXPECT_EQ(left.contains(chosen), !left.empty())
            << op << " where " << when << ": " << chosen;
        EXPECT_TRUE(!chosen.empty() || model_.may_be_empty(policy, op, when)) << op;
        for (const DecisionChange& change : checked.changes) {
          if (change.op != op || change.when != when) continue;
          EXPECT_EQ(chosen, change.after);
        }
      }
    }
  }

  const PolicyDraw& draw_;
  const PlainModel model_;
  SimulatedMachine& machine_;
  Counts& counts_;
  Runtime elsewhere_ = Runtime::create(bare()).value();
  Rows small_{2, 8}, wide_{2, 128}, many_{8, 8};
};

TEST(RandomPolicies, truth_check_load_reload_diff_and_explain_give_one_answer) {
  std::vector<std::string> features(base::cpu_features().begin(), base::cpu_features().end());
  ASSERT_GE(features.size(), 3u);
  features.resize(3);
  const std::vector<std::string> masks{"", features[0], features[1] + "," + features[2]};
  const std::vector<DrawnMachine> machines{
      {features.begin(), features.end()}, {features[1], features[2]}, {features[0]}};
  for (size_t i = 0; i < masks.size(); ++i) {
    PolicyDraw draw(kSeed, features);
    SimulatedMachine machine(draw, masks[i]);
    Counts counts;
    Comparison comparison(draw, machines[i], machine, counts);
    for (int n = 0; n < kPolicies && !testing::Test::HasFailure(); ++n) {
      SCOPED_TRACE("policy " + std::to_string(n) + " on machine " + std::to_string(i));
      comparison.compare(draw.policy());
    }
    std::printf("machine %zu: %d accepted, %d refused, %d changes, %d calls\n", i, counts.accepted,
                counts.refused, counts.changes, counts.calls);
    EXPECT_GT(counts.accepted, kPolicies / 10);
    EXPECT_GT(counts.refused, kPolicies / 10);
    EXPECT_GT(counts.changes, kPolicies / 10);
  }
}

}  // namespace
}  // namespace opmux::test
