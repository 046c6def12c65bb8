#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

TEST(Origin, a_rule_is_described_by_name_place_owner_and_term) {
  const Bench bench({{Source::file, with_rule({.name = "broken-driver",
                                               .deny = {"vendor"},
                                               .owner = "kernels@example.com",
                                               .expires = "2027-02-01",
                                               .where = "policy.yaml:12"})}});
  EXPECT_EQ(bench.dropped_by("acme"),
            "\"broken-driver\" (policy.yaml:12, kernels@example.com, until 2027-02-01)");
}

TEST(Origin, an_expired_rule_says_so) {
  const Bench bench(
      {{Source::file,
        with_rule({.name = "old", .deny = {"vendor"}, .expires = "2020-01-01", .expired = true})}});
  EXPECT_EQ(bench.dropped_by("acme"), "\"old\" (file, expired 2020-01-01)");
}

TEST(Origin, a_rule_without_a_name_is_described_by_its_operator) {
  const Bench bench({{Source::code, with_rule({.op = "nor*", .deny = {"vendor"}})}});
  EXPECT_EQ(bench.dropped_by("acme"), "rule for nor* (code)");
}

TEST(Origin, general_fields_are_described_by_their_source) {
  const auto by = [](Source source, Policy policy, const char* name) {
    const PolicyLayerPtr layer = PolicyLayer::make(source, std::move(policy), name).value();
    return describe(Origin{layer.get(), nullptr, "deny_vendors"});
  };
  EXPECT_EQ(by(Source::scope, {}, "scope"), "scope");
  EXPECT_EQ(by(Source::code, {}, "set_policy"), "set_policy (code)");
  EXPECT_EQ(by(Source::file, {}, "policy.yaml"), "deny_vendors (policy.yaml)");
  EXPECT_EQ(by(Source::environment, {}, "environment"), "OPMUX_DENY_VENDORS (environment)");
  EXPECT_EQ(by(Source::platform, {}, "acme.yaml"), "deny_vendors (acme.yaml)");
}

}  // namespace
}  // namespace opmux::policy
