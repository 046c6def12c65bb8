// The simd backend from its library, and tests that run for every instruction set of this machine.
#pragma once

#include <gmock/gmock.h>

#include "base/system/cpu_features.hpp"
#include "expected.hpp"
#include "library.hpp"
#include "reference.hpp"

namespace opmux::testing {

inline const LoadedPlugin& simd_plugin() {
  static const LoadedPlugin plugin = load_library(OPMUX_TEST_SIMD_LIBRARY);
  return plugin;
}

class SimdTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string missing =
        base::missing_features(view(simd("rms_norm").caps->cpu_features), base::cpu_features());
    if (!missing.empty()) GTEST_SKIP() << "processor lacks " << missing;
  }
  // The implementation for the instruction set under test.
  const opmux_impl& simd(std::string_view op) const {
    const opmux_impl* impl = simd_plugin().find(op, GetParam());
    if (!impl) throw std::runtime_error("no simd code of " + std::string(op));
    return *impl;
  }
};

inline const auto kSimdTargets = ::testing::Values("avx512", "avx2", "sse4");
inline std::string simd_target_name(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

inline constexpr Layout kInnerContiguous[] = {Layout::contiguous, Layout::padded_rows,
                                              Layout::swapped_leading};

// A thread pool that runs the last piece first and counts the pieces.
inline void backwards(void* pool, int64_t count, void* context, void (*body)(void*, int64_t)) {
  *static_cast<int64_t*>(pool) += count;
  for (int64_t i = count; i-- > 0;) body(context, i);
}

// The f32 result of the reference, with a relative and an absolute error.
inline std::vector<Expected> around(const Tensor& exact, double relative, double absolute = 0) {
  std::vector<Expected> result;
  for (int64_t i = 0; i < exact.elements(); ++i) {
    result.push_back({exact.get(i), std::fabs(exact.get(i)) * relative + absolute});
  }
  return result;
}

// Sums have at least one chain per lane, with four lanes on the smallest target.
inline std::vector<Expected> in_lanes(std::vector<Expected> expected, int64_t terms) {
  for (Expected& e : expected) e.error *= 1 + double(terms) / 8;
  return expected;
}

}  // namespace opmux::testing
