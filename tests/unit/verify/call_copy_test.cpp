#include "verify/call_copy.hpp"

#include <cstring>

#include "schema/schema.hpp"

namespace opmux::verify {
namespace {

/// A call with one input tensor and one inout tensor.
struct CopiedCall {
  CopiedCall(const TensorView& in, const TensorView& both) {
    args[0] = {OPMUX_ARG_TENSOR, OPMUX_ACCESS_IN, {}, 0};
    args[0].value.tensor = &in.c();
    args[1] = {OPMUX_ARG_TENSOR, OPMUX_ACCESS_INOUT, {}, 0};
    args[1].value.tensor = &both.c();
    args[2] = {OPMUX_ARG_F64, OPMUX_ACCESS_IN, {}, 0};
    args[2].value.f64 = 0.5;
    call.struct_size = sizeof call;
    call.arg_count = 3;
    call.arg_stride = sizeof(opmux_arg);
    call.args = args;
  }
  opmux_arg args[3] = {};
  opmux_call call{};
};

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(CallCopy, keeps_what_was_there_before_and_after) {
  float in[4] = {1, 2, 3, 4}, both[4] = {5, 6, 7, 8};
  const TensorView x(in, f32, {4}), y(both, f32, {4});
  const CopiedCall made(x, y);
  CallCopy copy(made.call);
  for (float& value : both) value += 10;
  copy.take_outputs(made.call);
  for (float& value : in) value = 0;
  for (float& value : both) value = 0;
  EXPECT_EQ(floats_of(copy.arguments()[0].before), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats_of(copy.arguments()[1].before), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_EQ(floats_of(copy.arguments()[1].after), (std::vector<float>{15, 16, 17, 18}));
  EXPECT_EQ(copy.arguments()[2].f64, 0.5);
}

TEST(CallCopy, packs_strided_tensors_and_keeps_how_they_lay) {
  float in[12];
  for (int i = 0; i < 12; ++i) in[i] = static_cast<float>(i);
  const std::array<int64_t, 2> shape{2, 3}, strides{1, 4};
  const TensorView x(in, f32, shape, strides);
  float both[1] = {0};
  const TensorView y(both, f32, {1});
  const CallCopy copy(CopiedCall(x, y).call);
  EXPECT_EQ(floats_of(copy.arguments()[0].before), (std::vector<float>{0, 4, 8, 1, 5, 9}));
  EXPECT_EQ(copy.arguments()[0].strides[1], 4);
}

TEST(CallCopy, takes_neither_strings_nor_memory_of_devices_nor_unknown_types) {
  float in[4] = {};
  const TensorView here(in, f32, {4});
  const TensorView there(in, f32, std::array<int64_t, 1>{4}, {}, Device{OPMUX_DEVICE_CUDA, 0});
  const TensorView odd(in, DType{OPMUX_DTYPE_FLOAT, 64}, {2});
  EXPECT_EQ(CallCopy::obstacle(CopiedCall(here, here).call), NoCopy::none);
  EXPECT_EQ(CallCopy::obstacle(CopiedCall(here, there).call), NoCopy::device);
  EXPECT_EQ(CallCopy::obstacle(CopiedCall(odd, here).call), NoCopy::arguments);
  CopiedCall text(here, here);
  text.args[2].tag = OPMUX_ARG_STR;
  EXPECT_EQ(CallCopy::obstacle(text.call), NoCopy::arguments);
}

}  // namespace
}  // namespace opmux::verify
