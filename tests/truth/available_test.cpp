#include <gmock/gmock.h>

#include <stdexcept>

#include "stage.hpp"

/// The probe of an implementation: asked, cached, explained and listed.
namespace opmux::test {
namespace {

struct AvailableProbe : testing::Test {
  AvailableProbe() { stage.add({.id = "copy/plain.one", .kind = Kind::reference}); }
  void add(std::function<std::string()> answer) {
    stage.add({.id = "copy/fast.one", .kind = Kind::default_, .available = [this, answer] {
                 ++asked;
                 return answer();
               }});
  }
  std::string ran() const {
    return ran_by([&] { EXPECT_TRUE(op(y, x).ok()); });
  }
  Candidate explained() const {
    for (const Candidate& candidate : op.explain(y, x).candidates) {
      if (candidate.id == "copy/fast.one") return candidate;
    }
    return {};
  }
  std::string listed() const {
    for (const OperatorInfo& each : stage.runtime.list()) {
      for (const ImplementationInfo& own : each.implementations) {
        if (own.id == "copy/fast.one") return own.available ? "available" : own.reason;
      }
    }
    return "missing";
  }

  int asked = 0;
  std::vector<float> memory = std::vector<float>(8);
  const TensorView y{memory.data(), f32, {8}}, x{memory.data(), f32, {8}};
  Stage stage;
  const Operator op = stage.define(kCopy);
};

TEST_F(AvailableProbe, of_an_implementation_is_asked_once) {
  add([] { return std::string(); });
  EXPECT_EQ(asked, 0) << "registering asks nothing";
  EXPECT_EQ(ran(), "copy/fast.one");
  stage.add({.id = "copy/other.one", .kind = Kind::vendor});  // the next call decides again
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_EQ(listed(), "available");
  EXPECT_EQ(asked, 1);
}

TEST_F(AvailableProbe, that_refuses_gives_the_reason) {
  add([] { return std::string("the driver is too old"); });
  EXPECT_EQ(ran(), "copy/plain.one");
  EXPECT_EQ(explained().code, "backend.unavailable");
  EXPECT_EQ(explained().reason, "the driver is too old");
  EXPECT_EQ(listed(), "the driver is too old");
  EXPECT_EQ(asked, 1);
}

TEST_F(AvailableProbe, that_throws_refuses) {
  add([]() -> std::string { throw std::runtime_error("no such library"); });
  EXPECT_EQ(ran(), "copy/plain.one");
  EXPECT_EQ(explained().reason, "its probe threw: no such library");
}

TEST_F(AvailableProbe, is_not_asked_for_a_denied_implementation) {
  add([] { return std::string(); });
  Policy policy;
  policy.deny = {"default"};
  ASSERT_TRUE(stage.runtime.policy().set(policy).ok());
  EXPECT_EQ(ran(), "copy/plain.one");
  EXPECT_EQ(asked, 0);
}

TEST_F(AvailableProbe, that_calls_the_operator_does_not_recurse) {
  Status inside;
  add([&] {
    inside = op(y, x);
    return std::string();
  });
  EXPECT_EQ(ran(), "copy/fast.one");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(inside.reason(), "runtime.callback");
}

}  // namespace
}  // namespace opmux::test
