#include "policy/rules/policy_set.hpp"

#include "base/system/clock.hpp"

namespace opmux::policy {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

sys_seconds at(const char* date, int64_t later = 0) {
  return sys_seconds(seconds(*base::end_of_day(date) - 86400 + later));
}

TEST(Expiry, marks_a_rule_when_its_last_day_is_over) {
  Policy policy;
  policy.rules.push_back({.name = "a", .expires = "2027-02-01"});
  policy.rules.push_back({.name = "b", .expires = "2027-02-03"});
  policy.rules.push_back({.name = "c"});
  EXPECT_EQ(next_expiry(policy), at("2027-02-02"));
  EXPECT_FALSE(mark_expired(policy, at("2027-02-01", 86399)));
  EXPECT_TRUE(mark_expired(policy, at("2027-02-02")));
  EXPECT_TRUE(policy.rules[0].expired);
  EXPECT_FALSE(policy.rules[1].expired);
  EXPECT_FALSE(mark_expired(policy, at("2027-02-02", 5)));
  EXPECT_EQ(next_expiry(policy), at("2027-02-04"));
}

TEST(Expiry, looks_at_outer_policies_too) {
  Policy outer, inner;
  outer.rules.push_back({.name = "a", .deny = {"reference"}, .expires = "2027-02-01"});
  inner.prefer = {"vendor"};
  Policy both = combine(outer, inner);
  EXPECT_EQ(next_expiry(both), at("2027-02-02"));
  EXPECT_TRUE(mark_expired(both, at("2027-02-02")));
  EXPECT_TRUE(both.outer->rules[0].expired);
}

}  // namespace
}  // namespace opmux::policy
