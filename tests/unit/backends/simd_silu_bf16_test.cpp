#include <bit>
#include <cmath>

#include "simd.hpp"

namespace opmux::testing {
namespace {

TEST(SimdSiluBf16, is_rounded_rightly_for_every_value) {
  const opmux_impl& impl = *simd_plugin().find("silu_and_mul", "avx512bf16");
  const std::string missing =
      base::missing_features(view(impl.caps->cpu_features), base::cpu_features());
  if (!missing.empty()) GTEST_SKIP() << "processor lacks " << missing;
  constexpr int64_t kValues = 1 << 16;
  const auto value = [](int64_t i) { return std::bit_cast<float>(uint32_t(i) << 16); };
  const Tensor x = make(kBF16, {1, 2 * kValues}).fill([&](int64_t i) {
    return i < kValues ? double(value(i)) : 1.0;
  });
  Tensor y = make(kBF16, {1, kValues});
  ASSERT_EQ(call(impl, {arg(y), arg(x)}).outcome, OPMUX_OK);
  for (int64_t i = 0; i < kValues; ++i) {
    const double v = value(i), right = v / (1 + std::exp(-v));
    if (std::isnan(right) || std::isinf(right)) {
      EXPECT_EQ(std::isnan(y.get(i)), std::isnan(right)) << v;
      EXPECT_EQ(std::isinf(y.get(i)), std::isinf(right)) << v;
    } else {
      EXPECT_NEAR(y.get(i), right, std::abs(right) * 0x1.01p-8 + (1 + std::abs(v)) * 0x1p-126) << v;
    }
  }
}

}  // namespace
}  // namespace opmux::testing
