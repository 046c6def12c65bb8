#include "dispatch/call/attempt.hpp"

#include "stage.hpp"

namespace opmux::test {
namespace {

/// Three candidates; the first one returns `ending`.
struct Three : Stage {
  explicit Three(Outcome ending, const DefineOptions& options = {}, Variables variables = {})
      : Stage(bare(std::move(variables))), op(define(kCopy, options)) {
    add({.id = "copy/first.one", .kind = Kind::default_, .run = [ending](CallFrame& call) {
           return ending == Outcome::ok ? ending : call.end(ending, "because");
         }});
    add({.id = "copy/second.one", .kind = Kind::vendor, .vendor = "acme"});
    add({.id = "copy/third.one", .kind = Kind::reference});
  }
  /// Makes a cold and a warm call; returns the implementations that ran both times.
  std::string run(Code expected) {
    const Rows rows;
    const auto once = [&] {
      return ran_by([&] { EXPECT_EQ(op(rows.y, rows.x).code(), expected); });
    };
    const std::string cold = once();
    return cold + " | " + once();
  }
  Operator op;
};

TEST(Outcomes, ok_is_done) {
  Three stage(Outcome::ok);
  EXPECT_EQ(stage.run(Code::ok), "copy/first.one | copy/first.one");
  EXPECT_EQ(stage.stats("copy/first.one").calls, 2u);
}

TEST(Outcomes, declined_goes_to_the_next_and_is_remembered) {
  Three stage(Outcome::declined);
  EXPECT_EQ(stage.run(Code::ok), "copy/first.one copy/second.one | copy/second.one");
  EXPECT_EQ(stage.stats("copy/first.one").declined, 1u);
  EXPECT_EQ(stage.stats("copy/first.one").failed, 0u);
  EXPECT_EQ(stage.stats("copy/second.one").stood_in, 1u)
      << "the second call skips the declined candidate";
}

TEST(Outcomes, invalid_argument_of_a_data_checked_operator_is_final) {
  Three stage(Outcome::invalid_argument, {.data_checked = true});
  EXPECT_EQ(stage.run(Code::invalid_argument), "copy/first.one | copy/first.one");
  EXPECT_EQ(stage.stats("copy/first.one").invalid_argument, 2u);
}

TEST(Outcomes, invalid_argument_of_another_operator_is_a_decline) {
  Three stage(Outcome::invalid_argument);
  EXPECT_EQ(stage.run(Code::ok), "copy/first.one copy/second.one | copy/second.one");
  EXPECT_EQ(stage.stats("copy/first.one").invalid_argument, 1u) << "counted apart";
  EXPECT_EQ(stage.stats("copy/first.one").declined, 0u);
}

TEST(Outcomes, failed_goes_to_the_next_each_time) {
  Three stage(Outcome::failed);
  EXPECT_EQ(stage.run(Code::ok), "copy/first.one copy/second.one | copy/first.one copy/second.one");
  EXPECT_EQ(stage.stats("copy/first.one").failed, 2u);
}

TEST(Outcomes, resource_is_tried_once_more_then_goes_to_the_next) {
  Three stage(Outcome::resource);
  EXPECT_EQ(stage.run(Code::ok),
            "copy/first.one copy/first.one copy/second.one | "
            "copy/first.one copy/first.one copy/second.one");
  EXPECT_EQ(stage.stats("copy/first.one").resource, 4u);
  EXPECT_EQ(stage.stats("copy/first.one").failed, 0u);
}

TEST(Outcomes, device_lost_is_final) {
  Three stage(Outcome::device_lost);
  EXPECT_EQ(stage.run(Code::device_lost), "copy/first.one | copy/first.one");
  EXPECT_EQ(stage.stats("copy/first.one").device_lost, 2u);
  EXPECT_TRUE(stage.runtime.health().lost_devices().empty()) << "the CPU cannot be lost";
}

TEST(Outcomes, strict_returns_the_first_that_is_not_ok) {
  for (const Outcome ending : {Outcome::declined, Outcome::invalid_argument, Outcome::failed,
                               Outcome::resource, Outcome::device_lost}) {
    Three stage(ending, {}, {{"OPMUX_STRICT", "1"}});
    EXPECT_EQ(stage.run(static_cast<Code>(ending)), "copy/first.one | copy/first.one");
  }
}

TEST(Outcomes, the_error_names_the_implementation_and_its_words) {
  Three stage(Outcome::failed, {}, {{"OPMUX_STRICT", "1"}});
  const Rows rows;
  const Status status = stage.op(rows.y, rows.x);
  EXPECT_EQ(status.reason(), "call.failed");
  EXPECT_EQ(status.message(), "copy/first.one failed: because");
  EXPECT_EQ(stage.op(rows.y, rows.x).message(), status.message()) << "the same on the cached path";
}

TEST(Outcomes, the_last_failure_is_returned_if_no_candidate_is_left) {
  Three stage(Outcome::failed);
  const auto fails = [](CallFrame& call) { return call.end(Outcome::failed, "me too"); };
  stage.kernel("copy/second.one").body = fails;
  stage.kernel("copy/third.one").body = fails;
  EXPECT_EQ(stage.run(Code::failed),
            "copy/first.one copy/second.one copy/third.one | "
            "copy/first.one copy/second.one copy/third.one");
  const Rows rows;
  EXPECT_EQ(stage.op(rows.y, rows.x).message(), "copy/third.one failed: me too");
}

TEST(Outcomes, a_report_names_the_implementation_and_the_reason_of_a_fallback) {
  Three stage(Outcome::failed);
  const Rows rows;
  CallReport report;
  ASSERT_TRUE(stage.op.with(report)(rows.y, rows.x).ok());
  EXPECT_EQ(report.implementation, "copy/second.one");
  EXPECT_TRUE(report.fell_back);
  EXPECT_EQ(report.reason, "copy/first.one failed: because");
  EXPECT_FALSE(report.cached);
  EXPECT_EQ(report.outcome, Code::ok);
  EXPECT_GT(report.generation, 0u);
  EXPECT_GT(report.run_ns, 0u);
  EXPECT_GT(report.select_ns, 0u);
  ASSERT_TRUE(stage.op.with(report)(rows.y, rows.x).ok());
  EXPECT_FALSE(report.cached) << "the first failure causes a new decision";
  ASSERT_TRUE(stage.op.with(report)(rows.y, rows.x).ok());
  EXPECT_TRUE(report.cached);
  stage.kernel("copy/first.one").body = [](CallFrame&) { return Outcome::ok; };
  ASSERT_TRUE(stage.op.with(report)(rows.y, rows.x).ok());
  EXPECT_FALSE(report.fell_back);
  EXPECT_TRUE(report.reason.empty());
  const TensorView wrong(rows.in, f32, {3, 3});
  EXPECT_FALSE(stage.op.with(report)(rows.y, wrong).ok());
  EXPECT_EQ(report.outcome, Code::invalid_argument);
  EXPECT_TRUE(report.implementation.empty());
}

TEST(Outcomes, an_unmet_preference_is_a_fall_back_in_the_report) {
  Three stage(Outcome::ok);
  ASSERT_TRUE(stage.runtime.policy().set({.prefer = {"vendor"}, .deny = {"vendor:acme"}}).ok());
  const Rows rows;
  CallReport report;
  ASSERT_TRUE(stage.op.with(report)(rows.y, rows.x).ok());
  EXPECT_EQ(report.implementation, "copy/first.one");
  EXPECT_TRUE(report.fell_back);
  EXPECT_NE(report.reason.find("copy/second.one is preferred but refused: policy.denied"),
            std::string::npos)
      << report.reason;
}

// The retry succeeds because memory was released in between.
TEST(Outcomes, a_retry_comes_after_prepared_states_were_evicted) {
  static int frees;
  frees = 0;
  Stage stage;
  const Operator copy = stage.define(kCopy);
  const Operator other = stage.define("other(out Tensor y[..., H], Tensor x[..., H])");
  Registration held =
      stage.runtime
          .implement({.id = "other/prep.one",
                      .kind = Kind::default_,
                      .kernel = {.run = [](void*, const opmux_call*) -> int32_t { return 0; },
                                 .plan = [](void*, const opmux_call*, void**) -> int32_t {
                                   return OPMUX_OK;
                                 },
                                 .plan_free = [](void*, void*) { ++frees; }}})
          .value();
  int attempts = 0;
  stage.add({.id = "copy/hungry.one", .kind = Kind::default_, .run = [&](CallFrame&) {
               return ++attempts % 2 == 1 ? Outcome::resource : Outcome::ok;
             }});
  const Rows rows;
  ASSERT_TRUE(other(rows.y, rows.x).ok());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(copy(rows.y, rows.x).ok()); }),
            "copy/hungry.one copy/hungry.one");
  ASSERT_TRUE(stage.runtime.policy().set({.prefer = {"default"}}).ok());
  EXPECT_EQ(frees, 1);
  ASSERT_TRUE(other(rows.y, rows.x).ok()) << "prepared again";
}

TEST(Declines, hold_for_the_exact_arguments_only) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H], int n = 0)");
  stage.add({.id = "copy/first.one", .kind = Kind::default_, .run = [](CallFrame& call) {
               return call.tensor(1).dim(0) == 3 || call.i64(2) == 5 ? Outcome::declined
                                                                     : Outcome::ok;
             }});
  stage.add({.id = "copy/last.one", .kind = Kind::reference});
  const auto run = [&](int64_t rows, int n) {
    const Rows t(rows, 8);
    return ran_by([&] { EXPECT_TRUE(op(t.y, t.x, n).ok()); });
  };
  EXPECT_EQ(run(2, 0), "copy/first.one");
  EXPECT_EQ(run(3, 0), "copy/first.one copy/last.one");
  EXPECT_EQ(run(3, 0), "copy/last.one");
  EXPECT_EQ(run(3, 0), "copy/last.one");
  EXPECT_EQ(run(2, 0), "copy/first.one");
  EXPECT_EQ(run(4, 0), "copy/first.one") << "a new shape starts with the first candidate again";
  EXPECT_EQ(run(4, 5), "copy/first.one copy/last.one");
  EXPECT_EQ(run(4, 5), "copy/last.one");
  EXPECT_EQ(run(4, 6), "copy/first.one");
  const Rows three(3, 8);
  const Candidate why = candidate(op.explain(three.y, three.x, 0), "copy/first.one");
  EXPECT_EQ(why.verdict, "refused");
  EXPECT_EQ(why.code, "call.declined");
  // Until the operator's epoch changes.
  ASSERT_TRUE(stage.runtime.policy().set({.prefer = {"default"}}).ok());
  EXPECT_EQ(run(3, 0), "copy/first.one copy/last.one");
}

TEST(Declines, the_only_candidate_is_tried_again) {
  Stage stage;
  const Operator op = stage.define(kCopy);
  stage.add({.id = "copy/only.one", .kind = Kind::default_, .run = [](CallFrame&) {
               return Outcome::declined;
             }});
  const Rows rows;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ran_by([&] { EXPECT_EQ(op(rows.y, rows.x).code(), Code::declined); }),
              "copy/only.one");
  }
}

TEST(Declines, more_declines_than_fit_are_tried_again) {
  Stage stage;
  const Operator op = stage.define("copy(out Tensor y[..., H], Tensor x[..., H], int n = 0)");
  stage.add({.id = "copy/first.one", .kind = Kind::default_, .run = [](CallFrame&) {
               return Outcome::declined;
             }});
  stage.add({.id = "copy/last.one", .kind = Kind::reference});
  const Rows t;
  for (int n = 0; n < 1100; ++n) ASSERT_TRUE(op(t.y, t.x, n).ok());
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x, 0).ok()); }), "copy/last.one");
  EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op(t.y, t.x, 5000).ok()); }), "copy/first.one copy/last.one");
}

TEST(Outcomes, undefined_outcomes_are_failures) {
  EXPECT_EQ(dispatch::outcome_of(OPMUX_DEVICE_LOST), Code::device_lost);
  EXPECT_EQ(dispatch::outcome_of(6), Code::failed);
  EXPECT_EQ(dispatch::outcome_of(-1), Code::failed);
  EXPECT_EQ(dispatch::outcome_of(16), Code::failed) << "a code of the host, not of a kernel";
}

}  // namespace
}  // namespace opmux::test
