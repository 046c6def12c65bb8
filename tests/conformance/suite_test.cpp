#include <atomic>
#include <cfenv>
#include <cmath>
#include <functional>

#include <opmux/conformance.hpp>
#include <opmux/opmux.hpp>

namespace opmux::conformance {
namespace {

/// Tests with silu_and_mul on f32; each test injects a different error.
class ConformanceSuite : public testing::Test {
 protected:
  using Kernel = std::function<Outcome(CallFrame&)>;

  static void silu(const CallFrame& call) {
    const TensorView y = call.tensor(0);
    const int64_t width = y.dim(y.rank() - 1), rows = width == 0 ? 0 : y.elements() / width;
    for (int64_t i = 0; i < rows * width; ++i) {
      const float* row = call.data<const float>(1) + i / width * 2 * width;
      const float v = row[i % width];
      call.data<float>(0)[i] = v / (1 + std::exp(-v)) * row[width + i % width];
    }
  }

  ImplementationReport verify_kernel(Kernel kernel, uint64_t cases = 100,
                                     uint32_t flags = OPMUX_IMPL_DETERMINISTIC |
                                                      OPMUX_IMPL_ATOMIC_OUTPUTS) {
    auto registration = runtime_.implement({.id = "silu_and_mul/acme.v1",
                                            .vendor = "acme",
                                            .caps = Caps{}.dtypes({f32}).contiguous(),
                                            .run = std::move(kernel),
                                            .flags = flags});
    auto report = verify(runtime_, {.backends = {"acme"}, .cases = cases});
    EXPECT_EQ(report->operators.size(), 1u);
    return report->operators[0].implementations[0];
  }
  static std::string kind_of(const ImplementationReport& report) {
    return report.findings.empty() ? "" : report.findings[0].kind;
  }

  Runtime runtime_ = Runtime::create({.backends = false}).value();
};

TEST_F(ConformanceSuite, passes_a_correct_kernel_and_counts_refusals) {
  std::atomic<int> calls{0};
  const ImplementationReport report = verify_kernel([&](CallFrame& call) {
    ++calls;
    return silu(call), Outcome::ok;
  });
  EXPECT_TRUE(report.passed());
  EXPECT_GT(report.refused, 0u);
  EXPECT_EQ(report.cases + report.refused, 100u);
  EXPECT_GT(calls, 2 * static_cast<int>(report.cases) - 10);
}

TEST_F(ConformanceSuite, finds_a_wrong_value_and_reports_how_to_reproduce_it) {
  const auto wrong = [](CallFrame& call) {
    silu(call);
    const TensorView y = call.tensor(0);
    if (y.dim(y.rank() - 1) % 8 == 3) call.data<float>(0)[y.elements() - 1] *= 1.00001F;
    return Outcome::ok;
  };
  const ImplementationReport report = verify_kernel(wrong, 1000);
  ASSERT_EQ(kind_of(report), "value");
  const Finding& finding = report.findings[0];
  EXPECT_THAT(finding.detail, testing::HasSubstr("expected"));
  EXPECT_THAT(finding.to_string(),
              testing::HasSubstr("opmux verify silu_and_mul --impl silu_and_mul/acme.v1 --seed 1"));
  auto registration = runtime_.implement({.id = "silu_and_mul/acme.v1",
                                          .vendor = "acme",
                                          .caps = Caps{}.dtypes({f32}).contiguous(),
                                          .run = wrong});
  const auto again =
      verify(runtime_, {.backends = {"acme"}, .cases = 1, .seed = 1, .first_case = finding.number});
  ASSERT_FALSE(again->passed());
  EXPECT_EQ(again->operators[0].implementations[0].findings[0].detail, finding.detail);
}

TEST_F(ConformanceSuite, finds_a_write_past_the_end) {
  const ImplementationReport report = verify_kernel([](CallFrame& call) {
    silu(call);
    call.data<float>(0)[call.tensor(0).elements()] = 0;
    return Outcome::ok;
  });
  EXPECT_THAT(kind_of(report), testing::AnyOf("crash", "out_of_bounds"));
}

TEST_F(ConformanceSuite, survives_every_crash_when_it_counts) {
  auto registration = runtime_.implement(
      {.id = "silu_and_mul/acme.v1", .vendor = "acme", .run = [](CallFrame& call) {
         *static_cast<volatile int*>(nullptr) = 1;
         return call.end(Outcome::failed, "not reached");
       }});
  const auto report = verify(runtime_, {.backends = {"acme"}, .cases = 50, .count_wrong = true});
  const ImplementationReport& acme = report->operators[0].implementations[0];
  EXPECT_EQ(kind_of(acme), "crash");
  EXPECT_GT(acme.wrong, 40u);
}

TEST_F(ConformanceSuite, finds_an_input_that_was_changed) {
  EXPECT_EQ(kind_of(verify_kernel([](CallFrame& call) {
              silu(call);
              *call.data<float>(1) += 1;
              return Outcome::ok;
            })),
            "input_changed");
}

TEST_F(ConformanceSuite, finds_outputs_that_were_read) {
  EXPECT_THAT(kind_of(verify_kernel([](CallFrame& call) {
                const float before = *call.data<float>(0);
                silu(call);
                if (before == before) *call.data<float>(0) = before;
                return Outcome::ok;
              })),
              "uninitialised");
}

TEST_F(ConformanceSuite, finds_nondeterministic_results) {
  std::atomic<int> calls{0};
  const auto kernel = [&](CallFrame& call) {
    silu(call);
    float& first = *call.data<float>(0);
    if (++calls % 2 == 0) first = std::nextafter(first, 0.0F);
    return Outcome::ok;
  };
  EXPECT_THAT(kind_of(verify_kernel(kernel)), testing::AnyOf("nondeterministic", "uninitialised"));
  EXPECT_TRUE(verify_kernel(kernel, 100, 0).passed()) << "the flag is not set";
}

TEST_F(ConformanceSuite, finds_rows_that_depend_on_others) {
  const auto kernel = [](CallFrame& call) {
    silu(call);
    float& first = *call.data<float>(0);
    const TensorView y = call.tensor(0);
    if (y.elements() > 2 * y.dim(y.rank() - 1)) first = std::nextafter(first, 0.0F);
    return Outcome::ok;
  };
  const uint32_t flags = OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT;
  EXPECT_EQ(kind_of(verify_kernel(kernel, 200, flags)), "batch_variant");
  EXPECT_TRUE(verify_kernel(kernel, 200, OPMUX_IMPL_DETERMINISTIC).passed())
      << "the flag is not set";
}

TEST_F(ConformanceSuite, finds_pieces_of_work_that_share_memory) {
  EXPECT_THAT(kind_of(verify_kernel([](CallFrame& call) {
                silu(call);
                if (call.c().max_threads < 2) return Outcome::ok;
                struct {
                  CallFrame* call;
                  int64_t done;
                } shared{&call, 0};
                call.c().parallel_for(call.c().pool, 2, &shared, [](void* context, int64_t i) {
                  auto& mine = *static_cast<decltype(shared)*>(context);
                  if (i == 0) *mine.call->data<float>(0) = 1;
                });
                return Outcome::ok;
              })),
              "threads");
}

TEST_F(ConformanceSuite, finds_writes_of_a_kernel_that_promised_none) {
  const auto kernel = [](CallFrame& call) {
    if (call.tensor(0).rank() < 3) return silu(call), Outcome::ok;
    *call.data<float>(0) = 1;
    return call.end(Outcome::declined, "not for me");
  };
  EXPECT_EQ(kind_of(verify_kernel(kernel)), "not_atomic");
}

TEST_F(ConformanceSuite, finds_states_that_a_kernel_leaves_changed) {
  const int before = std::fegetround();
  const ImplementationReport report = verify_kernel([](CallFrame& call) {
    silu(call);
    std::fesetround(FE_UPWARD);
    return Outcome::ok;
  });
  EXPECT_EQ(kind_of(report), "left_state");
  EXPECT_THAT(report.findings[0].detail, testing::HasSubstr("the floating-point mode"));
  EXPECT_EQ(std::fegetround(), before);
}

TEST_F(ConformanceSuite, counts_a_decline_as_a_refusal_and_a_failure_as_wrong) {
  const ImplementationReport declines = verify_kernel([](CallFrame& call) {
    if (call.tensor(0).rank() < 3) return silu(call), Outcome::ok;
    return call.end(Outcome::declined, "not for me");
  });
  EXPECT_TRUE(declines.passed());
  const ImplementationReport fails =
      verify_kernel([](CallFrame& call) { return call.end(Outcome::failed, "no luck"); });
  EXPECT_EQ(kind_of(fails), "outcome");
  EXPECT_THAT(fails.findings[0].detail, testing::HasSubstr("no luck"));
}

TEST_F(ConformanceSuite, an_implementation_that_takes_no_case_does_not_pass) {
  EXPECT_EQ(
      kind_of(verify_kernel([](CallFrame& call) { return call.end(Outcome::declined, "never"); })),
      "all_refused");
}

TEST_F(ConformanceSuite, draws_more_cases_if_none_of_the_first_was_taken) {
  const auto picky = [](CallFrame& call) {
    if (call.tensor(0).elements() % 7 != 1) return call.end(Outcome::declined, "not for me");
    return silu(call), Outcome::ok;
  };
  const ImplementationReport patient = verify_kernel(picky, 2);
  EXPECT_TRUE(patient.passed());
  EXPECT_GT(patient.refused, 2u);
  EXPECT_EQ(kind_of(verify_kernel(picky, 1)), "all_refused");
}

TEST_F(ConformanceSuite, refuses_unknown_names) {
  EXPECT_EQ(verify(runtime_, {.operators = {"sofmax"}}).error().code(), Code::not_found);
  EXPECT_EQ(verify(runtime_, {.backends = {"acme"}}).error().code(), Code::not_found);
  EXPECT_EQ(verify(runtime_, {.implementations = {"a/b.c"}}).error().code(), Code::not_found);
}

TEST_F(ConformanceSuite, reports_a_missing_reference) {
  ASSERT_TRUE(runtime_.define("acme.twice(out Tensor y[N], Tensor x[N])").ok());
  auto registration =
      runtime_.implement({.id = "acme.twice/acme.v1", .vendor = "acme", .run = [](CallFrame&) {
                            return Outcome::ok;
                          }});
  const auto report = verify(runtime_, {.backends = {"acme"}});
  EXPECT_FALSE(report->passed());
  EXPECT_EQ(report->operators[0].note, "it has no reference to compare with");
}

/// An operator defined by a plugin: y[i] = factor * x[i] for contiguous f32.
class OwnOperator : public ConformanceSuite {
 protected:
  OwnOperator() {
    EXPECT_TRUE(runtime_
                    .define("acme.times(out Tensor y[A, B], Tensor x[A, B], int factor = 2) "
                            "where A >= B && factor >= 0")
                    .ok());
  }
  Registration implement(const std::string& id, Kind kind, float error) {
    const auto times = [error](CallFrame& call) {
      const auto factor = static_cast<float>(call.i64(2)) * (1 + error);
      for (int64_t i = 0; i < call.tensor(0).elements(); ++i) {
        call.data<float>(0)[i] = factor * call.data<const float>(1)[i];
      }
      return Outcome::ok;
    };
    return runtime_
        .implement({.id = id,
                    .kind = kind,
                    .vendor = kind == Kind::vendor ? "acme" : "",
                    .caps = Caps{}.dtypes({f32}).contiguous(),
                    .run = times})
        .value();
  }
  ImplementationReport verify_with(float error) {
    const Registration reference = implement("acme.times/acme_plain.v1", Kind::reference, 0);
    const Registration subject = implement("acme.times/acme.v1", Kind::vendor, error);
    const auto report = verify(runtime_, {.backends = {"acme"}, .cases = 200});
    EXPECT_EQ(report->operators[0].note, "");
    return report->operators[0].implementations[0];
  }
};

TEST_F(OwnOperator, is_compared_with_its_own_reference) {
  const ImplementationReport report = verify_with(1e-5F);
  EXPECT_TRUE(report.passed());
  EXPECT_GT(report.cases, 20u);
}

TEST_F(OwnOperator, is_wrong_beyond_a_relative_error_of_a_thousandth) {
  EXPECT_EQ(kind_of(verify_with(0.01F)), "value");
}

}  // namespace
}  // namespace opmux::conformance
