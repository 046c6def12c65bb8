// Fixture of the onednn tests: calls that only onednn and the reference may run.
#pragma once

#include <opmux/opmux.hpp>

#include <string>

#include "expected.hpp"

namespace opmux::testing {

inline TensorView as_view(const Tensor& tensor) { return TensorView(tensor.c()); }

class OneDnn : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef OPMUX_TEST_ONEDNN
    GTEST_SKIP() << "the onednn backend is not built: oneDNN was not found";
#endif
  }
  static Runtime& runtime() {
    static Runtime made = Runtime::create().value();
    return made;
  }
  static Operator op(const char* name) { return runtime().op(name).value(); }

  // The implementation that ran.
  template <class... Args>
  static std::string ran(const char* name, const opmux::CallOptions& options, const Args&... args) {
    // Exclude other fast backends, which could run calls that onednn declines.
    const PolicyScope no_other(runtime(), {.deny = {"vendor:openblas", "default"}});
    CallReport report;
    const Status status = op(name).with(report, options)(args...);
    EXPECT_TRUE(status.ok()) << status.message();
    return report.implementation;
  }
  template <class... Args>
  static void expect_as_reference(const char* name, const Tensor& y, const Args&... args) {
    Tensor expected = y;
    const PolicyScope reference(runtime(), {.require = {"reference"}});
    ASSERT_TRUE(op(name)(as_view(expected), args...).ok());
    for (int64_t i = 0; i < y.elements(); ++i) {
      const double rounding = 2 * Format::of(y.dtype()).half_ulp() * std::fabs(expected.get(i));
      ASSERT_NEAR(y.get(i), expected.get(i), rounding + 1e-4) << i;
    }
    EXPECT_TRUE(y.gaps_intact());
  }
  static bool has_f16() { return __builtin_cpu_supports("avx512fp16"); }
};

}  // namespace opmux::testing
