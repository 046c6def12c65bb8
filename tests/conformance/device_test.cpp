#include <opmux/conformance.hpp>
#include <opmux/opmux.hpp>

namespace opmux::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Implementations for a device whose memory the CPU cannot read: tests/conformance/distant.
class ConformanceOfDevices : public testing::Test {
 protected:
  ImplementationReport verify_variant(const std::string& variant) {
    auto report =
        verify(runtime_, {.implementations = {"silu_and_mul/distant." + variant}, .cases = 150});
    EXPECT_EQ(report->operators.size(), 1u);
    return report->operators[0].implementations[0];
  }
  std::string finding_of(const std::string& variant) {
    const ImplementationReport report = verify_variant(variant);
    return report.findings.empty() ? "" : report.findings[0].kind;
  }

  Runtime runtime_ =
      Runtime::create({.plugins = {.folders = {OPMUX_TEST_DISTANT}}, .backends = false}).value();
};

TEST_F(ConformanceOfDevices, a_correct_kernel_passes_in_device_memory) {
  const ImplementationReport report = verify_variant("right");
  EXPECT_TRUE(report.passed()) << report.findings[0].to_string();
  EXPECT_GT(report.cases, 20u);
}

TEST_F(ConformanceOfDevices, a_write_past_the_end_of_a_buffer_is_seen) {
  EXPECT_EQ(finding_of("past_the_end"), "out_of_bounds");
}

TEST_F(ConformanceOfDevices, a_kernel_that_does_not_wait_for_its_stream_is_seen) {
  EXPECT_EQ(finding_of("out_of_order"), "value");
}

TEST_F(ConformanceOfDevices, an_error_after_the_call_is_its_outcome) {
  const ImplementationReport report = verify_variant("fails_later");
  ASSERT_FALSE(report.passed());
  EXPECT_EQ(report.findings[0].kind, "outcome");
  EXPECT_THAT(report.findings[0].detail, HasSubstr("synchronizing a stream returned failed"));
  ASSERT_EQ(runtime_.health().device_errors().size(), 1u);
  EXPECT_EQ(runtime_.health().device_errors()[0].code, 719);
  EXPECT_THAT(runtime_.health().device_errors()[0].suspects,
              ElementsAre("silu_and_mul/distant.fails_later"));
}

}  // namespace
}  // namespace opmux::conformance
