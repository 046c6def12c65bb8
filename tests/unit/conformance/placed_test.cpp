#include "conformance/placed.hpp"

#include <cstring>

#include "conformance/draft.hpp"
#include "conformance/trial.hpp"

namespace opmux::conformance {
namespace {

/// y (written) and x (read), both f32[2,3] with rows four elements apart.
class ConformancePlaced : public testing::Test {
 protected:
  ConformancePlaced() {
    infos_[0].name = "y";
    infos_[0].output = true;
    infos_[1].name = "x";
    for (ArgumentInfo& info : infos_) {
      info.type = ArgTag::tensor;
      CaseArgument& argument = case_.arguments.emplace_back();
      argument.info = &info;
      argument.present = true;
      argument.tensor.dtype = f32;
      argument.tensor.shape = {2, 3};
      argument.tensor.strides = {4, 1};
    }
    case_.arguments[1].tensor.values = {1, 2, 3, 4, 5, 6};
    case_.arguments[1].tensor.pack();
  }
  float* data(const Placed& placed, size_t i) {
    return static_cast<float*>(placed.arguments()[i].value.tensor->data);
  }
  std::vector<ArgumentInfo> infos_{2};
  Case case_;
  Arenas arenas_;
};

TEST_F(ConformancePlaced, puts_inputs_where_their_strides_say) {
  const Placed placed(arenas_, case_, std::byte{0xff});
  EXPECT_EQ(data(placed, 1)[0], 1);
  EXPECT_EQ(data(placed, 1)[6], 6);
  EXPECT_EQ(placed.elements(1), case_.arguments[1].tensor.packed);
  EXPECT_TRUE(placed.untouched());
}

TEST_F(ConformancePlaced, allows_the_elements_of_an_output) {
  const Placed placed(arenas_, case_, std::byte{0xff});
  for (const int i : {0, 1, 2, 4, 5, 6}) data(placed, 0)[i] = 1;
  EXPECT_FALSE(placed.damage());
  EXPECT_FALSE(placed.untouched());
}

TEST_F(ConformancePlaced, finds_a_write_between_rows) {
  const Placed placed(arenas_, case_, std::byte{0xff});
  data(placed, 0)[3] = 1;
  ASSERT_TRUE(placed.damage());
  EXPECT_EQ(placed.damage()->kind, "out_of_bounds");
  EXPECT_THAT(placed.damage()->detail, testing::StartsWith("y: byte 12,"));
}

TEST_F(ConformancePlaced, finds_a_write_in_front_of_a_tensor) {
  const Placed placed(arenas_, case_, std::byte{0xff});
  data(placed, 0)[-1] = 1;
  ASSERT_TRUE(placed.damage());
  EXPECT_THAT(placed.damage()->detail, testing::StartsWith("y: byte -4,"));
}

TEST_F(ConformancePlaced, finds_an_input_that_was_changed) {
  const Placed placed(arenas_, case_, std::byte{0xff});
  data(placed, 1)[4] = 7;
  ASSERT_TRUE(placed.damage());
  EXPECT_EQ(placed.damage()->kind, "input_changed");
}

TEST_F(ConformancePlaced, traps_accesses_past_the_end) {
  const CrashGuard guard;
  const Placed placed(arenas_, case_, std::byte{0xff});
  volatile float* past = data(placed, 1) + 7;
  EXPECT_FALSE(survives([&] { static_cast<void>(*past); }));
  case_.arguments[1].tensor.at_end = false;
  const Placed front(arenas_, case_, std::byte{0xff});
  volatile float* before = data(front, 1) - 1;
  EXPECT_FALSE(survives([&] { *before = 1; }));
  EXPECT_TRUE(survives([] {}));
}

}  // namespace
}  // namespace opmux::conformance
