#include "registry/implementation/native_kernel.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "base/status.hpp"

namespace opmux::registry {
namespace {

const ImplementationId kId{"swish", "acme", "v1"};

int32_t run(const Implementation& implementation, base::ErrorSink& sink) {
  const ImplementationDraft draft = draft_of(implementation, kId);
  opmux_call call{};
  call.struct_size = sizeof(call);
  call.error = sink.c();
  return draft.kernel.run(draft.kernel.user_data, &call);
}

int32_t no_fact(const void*, uint32_t, opmux_str, int64_t*) { return 0; }

int32_t verify(const Implementation& implementation, base::ErrorSink& sink) {
  const ImplementationDraft draft = draft_of(implementation, kId);
  const opmux_facts facts{sizeof(opmux_facts), 0, nullptr, no_fact};
  return draft.kernel.verify(draft.kernel.user_data, &facts, sink.c());
}

TEST(NativeKernel, passes_the_outcome_and_its_sentence_on) {
  base::ErrorSink sink;
  const Implementation ending{.id = "swish/acme.v1", .run = [](CallFrame& call) {
                                return call.end(Outcome::resource, "no room");
                              }};
  EXPECT_EQ(run(ending, sink), OPMUX_RESOURCE);
  EXPECT_EQ(sink.text(), "no room");
}

TEST(NativeKernel, turns_an_exception_into_failed_with_its_text) {
  base::ErrorSink sink;
  const Implementation throwing{.id = "swish/acme.v1", .run = [](CallFrame&) -> Outcome {
                                  throw std::runtime_error("bad tile");
                                }};
  EXPECT_EQ(run(throwing, sink), OPMUX_FAILED);
  EXPECT_EQ(sink.text(), "bad tile");
}

TEST(NativeKernel, turns_any_other_exception_into_failed) {
  base::ErrorSink sink;
  EXPECT_EQ(run({.id = "swish/acme.v1", .run = [](CallFrame&) -> Outcome { throw 3; }}, sink),
            OPMUX_FAILED);
  EXPECT_NE(sink.text(), "");
}

TEST(NativeKernel, tells_a_refusing_verifier_from_a_broken_one) {
  base::ErrorSink accepted, refused, broken;
  const auto with = [](std::function<std::string(const Facts&)> verifier) {
    return Implementation{.id = "swish/acme.v1", .verify = std::move(verifier)};
  };
  EXPECT_EQ(verify(with([](const Facts&) { return ""; }), accepted), OPMUX_OK);
  EXPECT_EQ(verify(with([](const Facts&) { return "odd H"; }), refused), OPMUX_DECLINED);
  EXPECT_EQ(refused.text(), "odd H");
  EXPECT_EQ(
      verify(with([](const Facts&) -> std::string { throw std::out_of_range("oops"); }), broken),
      OPMUX_FAILED);
  EXPECT_EQ(broken.text(), "oops");
}

TEST(NativeKernel, carries_everything_over_and_leaves_missing_functions_null) {
  Implementation all;
  all.flags = OPMUX_IMPL_SERIAL;
  all.priority = 7;
  all.signature = "swish(out Tensor y[N])";
  all.build_id = "b1";
  all.verify_reads = {{OPMUX_FACT_DIM, "N"}};
  all.plan_reads = {{OPMUX_FACT_DTYPE, "x"}};
  all.create_reads = {{OPMUX_FACT_SCALAR, "group"}};
  const ImplementationDraft draft = draft_of(all, kId);
  EXPECT_EQ(draft.op, "swish");
  EXPECT_EQ(draft.variant, "v1");
  EXPECT_EQ(draft.flags, OPMUX_IMPL_SERIAL);
  EXPECT_EQ(draft.priority, 7);
  EXPECT_EQ(draft.signature, all.signature);
  EXPECT_EQ(draft.build_id, "b1");
  ASSERT_TRUE(draft.verify_reads);
  EXPECT_EQ(draft.verify_reads->at(0), (schema::FactName{schema::FactKind::dim, "N"}));
  ASSERT_TRUE(draft.plan_reads && draft.create_reads);
  EXPECT_EQ(draft.plan_reads->at(0), (schema::FactName{schema::FactKind::dtype, "x"}));
  EXPECT_EQ(draft.create_reads->at(0), (schema::FactName{schema::FactKind::scalar, "group"}));
  EXPECT_EQ(draft.kernel.run, nullptr);
  EXPECT_EQ(draft.kernel.verify, nullptr);
}

}  // namespace
}  // namespace opmux::registry
