#include "policy/rules/origin_report.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "policy_bench.hpp"

namespace opmux::policy {
namespace {

std::vector<std::string> lines(const std::vector<Setting>& settings) {
  std::vector<std::string> all;
  for (const Setting& s : settings) all.push_back(s.key + " = " + s.value + " <- " + s.origin);
  return all;
}

TEST(OriginReport, shows_the_built_in_values_without_a_policy) {
  EXPECT_THAT(
      lines(effective_settings({})),
      testing::ElementsAre("prefer = by priority <- built-in", "strict = false <- built-in"));
}

TEST(OriginReport, an_ordering_field_shows_the_strongest_source_only) {
  const PolicySet set{{layer_of(Source::code, {.prefer = {"vendor:acme", "default"}}),
                       layer_of(Source::environment, {.prefer = {"reference"}, .strict = true})}};
  EXPECT_THAT(lines(effective_settings(set)),
              testing::ElementsAre("prefer = vendor:acme,default <- code (code)",
                                   "strict = true <- OPMUX_STRICT (environment)"));
}

TEST(OriginReport, constraints_show_every_source) {
  const PolicySet set{{layer_of(Source::code, {.deny = {"vendor"}, .deny_vendors = {"acme"}}),
                       layer_of(Source::file, {.require = {"default"}, .deny = {"*/opencl.*"}})}};
  EXPECT_THAT(lines(effective_settings(set)),
              testing::ElementsAre(
                  "prefer = by priority <- built-in", "strict = false <- built-in",
                  "require = default <- require (file)", "deny = vendor <- code (code)",
                  "deny = */opencl.* <- deny (file)", "deny_vendors = acme <- code (code)"));
}

TEST(OriginReport, orders_show_per_operator_with_their_source) {
  const PolicySet set{{layer_of(Source::code, {.allow = {"vendor"},
                                               .allow_vendors = {"acme"},
                                               .per_op = {{"norm", {"vendor", "reference"}}}}),
                       layer_of(Source::environment,
                                {.per_op = {{"norm", {"default"}}, {"softmax", {"reference"}}}})}};
  EXPECT_THAT(
      lines(effective_settings(set)),
      testing::ElementsAre("prefer = by priority <- built-in", "strict = false <- built-in",
                           "allow = vendor <- code (code)", "allow_vendors = acme <- code (code)",
                           "order.norm = vendor,reference <- code (code)",
                           "order.softmax = reference <- OPMUX_PER_OP (environment)"));
}

TEST(OriginReport, rules_are_counted_per_source_with_the_expired_ones) {
  const PolicySet set{
      {layer_of(Source::file, {.rules = {{.deny = {"vendor"}, .expired = true}, {}, {}}}),
       layer_of(Source::platform, {.rules = {{}}})}};
  EXPECT_THAT(lines(effective_settings(set)),
              testing::IsSupersetOf(
                  {"rules = 3 (1 expired) <- rules (file)", "rules = 1 <- rules (platform)"}));
}

TEST(OriginReport, what_the_environment_says_about_the_process) {
  const Environment environment = parse_environment({{"OPMUX_MODE", "static"},
                                                     {"OPMUX_DISABLE", "1"},
                                                     {"OPMUX_CRASH_JOURNAL", "on"},
                                                     {"OPMUX_NUM_THREADS", "3"},
                                                     {"OPMUX_PLUGIN_PATH", "/a:/b"},
                                                     {"OPMUX_BACKEND_SIMD", "0"},
                                                     {"OPMUX_PREFER", "vendor"}})
                                      .value();
  EXPECT_THAT(lines(process_settings(environment)),
              testing::ElementsAre("crash_journal = on <- OPMUX_CRASH_JOURNAL (environment)",
                                   "plugin_path = /a:/b <- OPMUX_PLUGIN_PATH (environment)",
                                   "num_threads = 3 <- OPMUX_NUM_THREADS (environment)",
                                   "disable = true <- OPMUX_DISABLE (environment)",
                                   "backend.simd = off <- OPMUX_BACKEND_SIMD (environment)"));
}

}  // namespace
}  // namespace opmux::policy
