#include "runtime/registration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage.hpp"

namespace opmux::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string unary(const std::string& name) {
  return name + "(out Tensor y[..., H], Tensor x[..., H])";
}

/// A kernel that records that it ran.
Implementation recording(const std::string& id, int priority = -1) {
  return {.id = id, .kind = Kind::default_, .priority = priority, .run = [id](CallFrame&) {
            if (trail != nullptr) trail->push_back(id);
            return Outcome::ok;
          }};
}

/// Operators named a0, a1 ... and one implementation of each.
struct RegistrationTest : testing::Test {
  static constexpr int kMany = 500;

  RegistrationTest() {
    for (int i = 0; i < kMany; ++i) {
      const std::string name = "a" + std::to_string(i);
      operators.push_back({unary(name)});
      kernels.push_back(recording(name + "/mine.v1"));
    }
  }
  /// The implementation that runs a call of an operator; empty if none can.
  std::string runs(const std::string& name) {
    const Operator op = stage.runtime.op(name).value();
    const Rows t;
    return ran_by([&] { (void)op(t.y, t.x); });
  }
  bool defined(const std::string& name) const { return stage.runtime.op(name).has_value(); }

  Stage stage;
  std::vector<Definition> operators;
  std::vector<Implementation> kernels;
};

TEST_F(RegistrationTest, of_many_operators_and_implementations_publishes_once) {
  const uint64_t before = stage.runtime.generation();
  const Registration all = stage.runtime.implement(kernels, operators).value();
  EXPECT_EQ(stage.runtime.generation(), before + 1);
  EXPECT_EQ(runs("a0"), "a0/mine.v1");
  EXPECT_EQ(runs("a499"), "a499/mine.v1");
}

TEST_F(RegistrationTest, is_withdrawn_with_one_publication) {
  Registration all = stage.runtime.implement(kernels, operators).value();
  const Registration other = stage.runtime.implement(recording("a7/other.v1", 50)).value();
  EXPECT_EQ(runs("a7"), "a7/mine.v1");
  const uint64_t before = stage.runtime.generation();
  EXPECT_TRUE(all.withdraw().ok());
  EXPECT_EQ(stage.runtime.generation(), before + 1);
  EXPECT_EQ(runs("a7"), "a7/other.v1");
  EXPECT_EQ(runs("a8"), "");
  EXPECT_TRUE(defined("a8")) << "operators stay defined";
}

TEST_F(RegistrationTest, is_divided_into_parts_that_are_withdrawn_separately) {
  Registration all = stage.runtime.implement(kernels, operators).value();
  const uint64_t before = stage.runtime.generation();
  std::vector<Registration> parts = all.split();
  ASSERT_EQ(parts.size(), kernels.size());
  EXPECT_EQ(stage.runtime.generation(), before);
  EXPECT_TRUE(all.withdraw().ok());
  EXPECT_EQ(runs("a3"), "a3/mine.v1") << "the whole holds nothing after it was divided";
  EXPECT_TRUE(parts[3].withdraw().ok());
  EXPECT_EQ(runs("a3"), "");
  EXPECT_EQ(runs("a4"), "a4/mine.v1");
  EXPECT_TRUE(Registration().split().empty());
}

TEST_F(RegistrationTest, leaves_nothing_if_one_implementation_is_refused) {
  kernels[250].run = {};
  const uint64_t before = stage.runtime.generation();
  const Status refused = stage.runtime.implement(kernels, operators).error();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_EQ(refused.reason(), "registry.no_run");
  EXPECT_THAT(std::string(refused.message()), StartsWith("a250/mine.v1: "));
  EXPECT_EQ(stage.runtime.generation(), before);
  EXPECT_FALSE(defined("a0"));
  kernels[250] = recording("a250/mine.v1");
  const Registration all = stage.runtime.implement(kernels, operators).value();
  EXPECT_EQ(runs("a250"), "a250/mine.v1");
}

TEST_F(RegistrationTest, leaves_nothing_if_one_operator_is_refused) {
  operators[499].schema = "a499(out Tensr y)";
  const Status refused = stage.runtime.implement(kernels, operators).error();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(std::string(refused.message()), StartsWith("a499: "));
  EXPECT_FALSE(defined("a0"));
}

TEST_F(RegistrationTest, refuses_two_implementations_with_one_id_and_two_kinds_of_one_backend) {
  ASSERT_TRUE(stage.runtime.define(operators).ok());
  kernels[1].id = "a0/mine.v1";
  Status refused = stage.runtime.implement(kernels).error();
  EXPECT_EQ(refused.reason(), "registry.duplicate");
  kernels[1] = recording("a1/mine.v1");
  kernels[1].kind = Kind::reference;
  refused = stage.runtime.implement(kernels).error();
  EXPECT_EQ(refused.reason(), "registry.backend");
  EXPECT_THAT(std::string(refused.message()), StartsWith("a1/mine.v1: "));
  kernels[1] = recording("no id");
  refused = stage.runtime.implement(kernels).error();
  EXPECT_EQ(refused.reason(), "registry.name");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'no id'"));
  EXPECT_EQ(runs("a0"), "") << "nothing of a refused step is left";
}

TEST_F(RegistrationTest, of_operators_alone_publishes_once_and_keeps_their_options) {
  operators[1].options.data_checked = true;
  const uint64_t before = stage.runtime.generation();
  EXPECT_TRUE(stage.runtime.define(operators).ok());
  EXPECT_EQ(stage.runtime.generation(), before + 1);
  EXPECT_TRUE(stage.runtime.define(operators).ok()) << "the same texts again change nothing";
  EXPECT_TRUE(stage.runtime.define(std::span<const Definition>()).ok());
  EXPECT_EQ(stage.runtime.generation(), before + 1);
  const auto refuses = [](const std::string& id) {
    Implementation made = recording(id, 200);
    made.run = [](CallFrame& call) { return call.end(Outcome::invalid_argument, "no"); };
    return made;
  };
  kernels.push_back(refuses("a0/strict.v1"));
  kernels.push_back(refuses("a1/strict.v1"));
  const Registration all = stage.runtime.implement(kernels).value();
  EXPECT_EQ(runs("a0"), "a0/mine.v1") << "another candidate runs";
  EXPECT_EQ(runs("a1"), "") << "the outcome is final where kernels check data";
}

TEST_F(RegistrationTest, is_refused_when_the_runtime_is_frozen) {
  ASSERT_TRUE(stage.runtime.define({operators.data(), 2}).ok());
  ASSERT_TRUE(stage.runtime.lockfile().freeze().has_value());
  EXPECT_EQ(stage.runtime.implement({kernels.data(), 2}).error().code(), Code::frozen);
  EXPECT_EQ(stage.runtime.define(operators).code(), Code::frozen);
  EXPECT_TRUE(stage.runtime.define({operators.data(), 2}).ok()) << "they are defined already";
  EXPECT_FALSE(defined("a2"));
  EXPECT_EQ(runs("a0"), "");
}

}  // namespace
}  // namespace opmux::test
