#include "expected.hpp"
#include "reference.hpp"

namespace opmux::testing {
namespace {

TEST(ReferenceNegate, changes_the_sign_of_every_element) {
  for (opmux_dtype dtype : kFloats) {
    for (Layout layout : kLayouts) {
      SCOPED_TRACE(name(dtype) + " " + name(layout));
      const Tensor x = random(dtype, {3, 8}, layout);
      Tensor y = make(dtype, {3, 8}, layout);
      ASSERT_EQ(call(reference("negate"), {arg(y), arg(x)}).outcome, OPMUX_OK);
      for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(y.get(i), -x.get(i)) << i;
    }
  }
}

}  // namespace
}  // namespace opmux::testing
