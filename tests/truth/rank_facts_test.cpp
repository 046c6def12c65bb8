#include <gmock/gmock.h>

#include "stage.hpp"

/// `rank` and `tp_size` in conditions: stated by the program or the environment, never guessed.
namespace opmux::test {
namespace {

constexpr char kPolicy[] =
    "opmux: 1\nrules:\n  - op: copy\n    when: tp_size > 1 && rank == 0\n    deny: [default]\n";

struct TruthOfRanks : testing::Test {
  explicit TruthOfRanks(Variables variables = {}) : stage(bare(std::move(variables))) {
    stage.add({.id = "copy/fast.one", .kind = Kind::default_});
    stage.add({.id = "copy/plain.one", .kind = Kind::reference});
    EXPECT_TRUE(stage.runtime.policy().load(kPolicy, "policy.yaml").ok());
  }
  std::string ran() {
    return ran_by([&] { EXPECT_TRUE(op(rows.y, rows.x).ok()); });
  }
  std::vector<std::string> depends_on() const { return op.explain(rows.y, rows.x).depends_on; }

  Rows rows;
  Stage stage;
  const Operator op = stage.define(kCopy);
};

TEST_F(TruthOfRanks, a_change_takes_effect_on_the_next_call) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(stage.runtime.set_rank(0, 8).ok());
    EXPECT_EQ(ran(), "copy/plain.one");
    EXPECT_EQ(ran(), "copy/plain.one");
    ASSERT_TRUE(stage.runtime.set_rank(1, 8).ok());
    EXPECT_EQ(ran(), "copy/fast.one");
    EXPECT_EQ(ran(), "copy/fast.one");
    ASSERT_TRUE(stage.runtime.set_rank(0, 1).ok());
    EXPECT_EQ(ran(), "copy/fast.one");
  }
}

TEST_F(TruthOfRanks, a_condition_about_a_rank_that_is_not_stated_is_not_true) {
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_THAT(depends_on(), testing::IsSupersetOf({"rank (not stated)", "tp_size (not stated)"}));
  ASSERT_TRUE(stage.runtime.set_rank(std::nullopt, 8).ok());
  EXPECT_EQ(ran(), "copy/fast.one");
  ASSERT_TRUE(stage.runtime.set_rank(0, 8).ok());
  EXPECT_EQ(ran(), "copy/plain.one");
  ASSERT_TRUE(stage.runtime.set_rank({}, {}).ok());
  EXPECT_EQ(ran(), "copy/fast.one");
}

TEST_F(TruthOfRanks, explain_and_lockfile_have_the_values) {
  ASSERT_TRUE(stage.runtime.set_rank(3, 8).ok());
  EXPECT_THAT(depends_on(), testing::IsSupersetOf({"rank = 3", "tp_size = 8"}));
  EXPECT_EQ(ran(), "copy/fast.one");
  const Lockfile lock = stage.runtime.lockfile().current();
  ASSERT_EQ(lock.choices.size(), 1u);
  EXPECT_THAT(lock.choices[0].when, testing::HasSubstr("rank == 3 && tp_size == 8"));
  EXPECT_TRUE(stage.runtime.lockfile().check(lock).ok());
}

TEST_F(TruthOfRanks, a_bound_plan_becomes_stale_as_by_a_policy) {
  ASSERT_TRUE(stage.runtime.set_rank(1, 8).ok());
  const Plan plan = op.bind(rows.y, rows.x).value();
  EXPECT_EQ(plan.state(), Plan::State::current);
  ASSERT_TRUE(stage.runtime.set_rank(0, 8).ok());
  EXPECT_NE(plan.state(), Plan::State::current);
}

TEST_F(TruthOfRanks, a_verifier_reads_them_as_ambient_facts) {
  std::vector<std::optional<int64_t>> seen;
  stage.add({.id = "copy/asked.one",
             .kind = Kind::vendor,
             .priority = 900,
             .verify = [&](const Facts& facts) -> std::string {
               seen.push_back(facts.get(OPMUX_FACT_AMBIENT, "tp_size"));
               return seen.back() == 4 ? "" : "only for 4 processes";
             },
             .verify_reads = {{{OPMUX_FACT_AMBIENT, "tp_size"}}}});
  EXPECT_EQ(ran(), "copy/fast.one");
  ASSERT_TRUE(stage.runtime.set_rank(2, 4).ok());
  EXPECT_EQ(ran(), "copy/asked.one");
  EXPECT_THAT(seen, testing::ElementsAre(std::nullopt, 4));
}

TEST_F(TruthOfRanks, numbers_out_of_range_are_refused) {
  for (const auto& [rank, tp_size] : {std::pair(-1, 8), std::pair(65'001, 8), std::pair(0, 0)}) {
    const Status status = stage.runtime.set_rank(rank, tp_size);
    EXPECT_EQ(status.reason(), "ambient.rank");
  }
  EXPECT_EQ(ran(), "copy/fast.one");
}

TEST_F(TruthOfRanks, of_an_argument_with_that_name_stay_the_argument) {
  const Operator own = stage.define("shard(out Tensor y[N], Tensor x[N], int rank = 0)");
  stage.add({.id = "shard/fast.one", .kind = Kind::default_});
  stage.add({.id = "shard/plain.one", .kind = Kind::reference});
  ASSERT_TRUE(
      stage.runtime.policy()
          .load("opmux: 1\nrules:\n  - op: shard\n    when: rank == 5\n    deny: [default]\n",
                "policy.yaml")
          .ok());
  const TensorView y(rows.out, f32, {8}), x(rows.in, f32, {8});
  ASSERT_TRUE(stage.runtime.set_rank(5, 8).ok());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(own(y, x, 0).ok()); }), "shard/fast.one");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(own(y, x, 5).ok()); }), "shard/plain.one");
}

struct TruthOfRanksOfTheEnvironment : TruthOfRanks {
  TruthOfRanksOfTheEnvironment() : TruthOfRanks({{"OPMUX_RANK", "0"}, {"OPMUX_TP_SIZE", "2"}}) {}
};

TEST_F(TruthOfRanksOfTheEnvironment,
       opmux_rank_and_opmux_tp_size_hold_until_the_program_says_more) {
  EXPECT_EQ(setting(stage.runtime, "rank"), "0 <- OPMUX_RANK (environment)");
  EXPECT_EQ(setting(stage.runtime, "tp_size"), "2 <- OPMUX_TP_SIZE (environment)");
  EXPECT_EQ(ran(), "copy/plain.one");
  ASSERT_TRUE(stage.runtime.set_rank(1, 2).ok());
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_EQ(setting(stage.runtime, "rank"), "1 <- set_rank (code)");
}

TEST(TruthOfRankVariables, are_refused_out_of_range_and_those_of_other_programs_are_not_read) {
  for (const auto& [name, value] : {std::pair("OPMUX_RANK", "-1"), std::pair("OPMUX_RANK", "one"),
                                    std::pair("OPMUX_TP_SIZE", "0")}) {
    const auto runtime = Runtime::create(bare({{name, value}}));
    ASSERT_FALSE(runtime) << name;
    EXPECT_EQ(runtime.error().reason(), "environment.value");
  }
  const Stage stage(bare({{"RANK", "0"}, {"WORLD_SIZE", "8"}}));
  EXPECT_EQ(setting(stage.runtime, "rank"), "");
  EXPECT_EQ(setting(stage.runtime, "tp_size"), "");
}

}  // namespace
}  // namespace opmux::test
