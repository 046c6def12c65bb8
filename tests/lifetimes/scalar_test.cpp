#include <array>
#include <vector>

#include "stage.hpp"

namespace opmux::test {
namespace {

TEST(ScalarLifetime, a_bool_of_two_is_one_for_every_call) {
  Stage stage;
  const Operator op = stage.define("mask(out Tensor y[H], Tensor x[H], bool causal = false)");
  std::vector<int64_t> seen;
  stage.add({.id = "mask/one.x", .kind = Kind::default_, .run = [&](CallFrame& call) {
               seen.push_back(call.i64(2));
               return Outcome::ok;
             }});
  float memory[16] = {};
  const TensorView y(memory, f32, {8}), x(memory + 8, f32, {8});
  std::array<opmux_arg, 3> args{};
  args[0].tag = args[1].tag = OPMUX_ARG_TENSOR;
  args[0].value.tensor = &y.c();
  args[1].value.tensor = &x.c();
  args[2].tag = OPMUX_ARG_BOOL;
  for (const int64_t given : {2, 2, 2, -1, 256, 1}) {
    args[2].value.i64 = given;
    EXPECT_EQ(ran_by([&] { EXPECT_TRUE(op.call_arguments(args).ok()); }), "mask/one.x");
  }
  EXPECT_EQ(seen, std::vector<int64_t>(6, 1));
}

}  // namespace
}  // namespace opmux::test
