#include <thread>

#include "stage.hpp"

namespace opmux::test {
namespace {

struct ScopeTest : testing::Test, Stage {
  ScopeTest() : op(define("copy(out Tensor y[..., H], Tensor x[..., H])")) {
    add({.id = "copy/fast.one", .kind = Kind::default_});
    add({.id = "copy/acme.one", .kind = Kind::vendor, .vendor = "acme"});
    add({.id = "copy/plain.one", .kind = Kind::reference});
  }
  std::string who() {
    return ran_by([&] { last = op(rows.y, rows.x); });
  }
  Operator op;
  const Rows rows;
  Status last;
};

TEST_F(ScopeTest, nest_and_restore) {
  EXPECT_EQ(who(), "copy/fast.one");
  {
    const PolicyScope outer(runtime, {.prefer = {"vendor"}});
    EXPECT_EQ(who(), "copy/acme.one");
    {
      const PolicyScope inner(runtime, {.prefer = {"reference"}});
      EXPECT_EQ(who(), "copy/plain.one");
      const PolicyScope innermost(runtime, {.deny = {"reference"}});
      EXPECT_EQ(who(), "copy/fast.one") << "the inner preference cannot be met";
    }
    EXPECT_EQ(who(), "copy/acme.one");
  }
  EXPECT_EQ(who(), "copy/fast.one");
}

TEST_F(ScopeTest, are_carried_to_wherever_they_are_entered) {
  const Scope vendor = Scope::make(runtime, {.prefer = {"vendor"}}).value();
  const Scope inner = Scope::make(runtime, {.deny = {"vendor"}}, vendor).value();
  {
    const EnteredScope entered(vendor);
    EXPECT_EQ(who(), "copy/acme.one");
    {
      const EnteredScope deeper(inner);
      EXPECT_EQ(who(), "copy/fast.one") << "the outer preference is denied inside";
      const EnteredScope none(Scope{});
      EXPECT_EQ(who(), "copy/fast.one");
    }
    EXPECT_EQ(who(), "copy/acme.one");
  }
  EXPECT_EQ(who(), "copy/fast.one");
  std::string elsewhere;
  std::thread([&] {
    const EnteredScope entered(vendor);
    elsewhere = who();
  }).join();
  EXPECT_EQ(elsewhere, "copy/acme.one");
}

TEST_F(ScopeTest, a_block_inside_an_entered_scope_extends_only_that_scope) {
  const PolicyScope around(runtime, {.deny = {"copy/fast.*"}});
  const Scope vendor = Scope::make(runtime, {.prefer = {"vendor"}}).value();
  const EnteredScope entered(vendor);
  const PolicyScope block(runtime, {.deny = {"vendor"}});
  EXPECT_EQ(who(), "copy/fast.one") << "scopes around the entered scope do not apply";
}

TEST_F(ScopeTest, override_the_policy_in_code) {
  ASSERT_TRUE(runtime.policy().set({.prefer = {"vendor"}}).ok());
  EXPECT_EQ(who(), "copy/acme.one");
  const PolicyScope scope(runtime, {.prefer = {"reference"}});
  EXPECT_EQ(who(), "copy/plain.one");
  ASSERT_TRUE(runtime.policy().set({.prefer = {"default"}}).ok());
  EXPECT_EQ(who(), "copy/plain.one");
}

TEST_F(ScopeTest, a_wrong_policy_changes_nothing_and_says_why) {
  const PolicyScope scope(runtime, {.prefer = {"vender"}});
  EXPECT_EQ(scope.status().reason(), "policy.token");
  EXPECT_EQ(who(), "copy/fast.one");
}

TEST_F(ScopeTest, may_leave_no_candidate_and_the_error_names_it) {
  const PolicyScope scope(runtime, {.require = {"vendor:zeta"}});
  EXPECT_EQ(who(), "");
  EXPECT_EQ(last.code(), Code::no_candidate);
  EXPECT_NE(last.message().find("scope"), std::string_view::npos) << last.message();
}

TEST_F(ScopeTest, strictness_is_part_of_a_scope) {
  kernel("copy/fast.one").body = [](CallFrame&) { return Outcome::failed; };
  EXPECT_EQ(who(), "copy/fast.one copy/acme.one");
  const PolicyScope scope(runtime, {.strict = true});
  EXPECT_EQ(who(), "copy/fast.one");
}

TEST_F(ScopeTest, ambient_facts_nest_beside_policies) {
  const AmbientScope grad({.grad = true, .training = true});
  {
    const PolicyScope policy(runtime, {.prefer = {"vendor"}});
    const AmbientScope deterministic({.deterministic = true});
    EXPECT_EQ(who(), "") << "no implementation declares it";
  }
  EXPECT_EQ(who(), "copy/fast.one");
}

}  // namespace
}  // namespace opmux::test
