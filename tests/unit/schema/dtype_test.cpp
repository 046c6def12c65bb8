#include <opmux/tensor.hpp>

#include <gtest/gtest.h>

namespace opmux {
namespace {

TEST(DType, has_a_name_that_reads_back) {
  for (const DType dtype : {f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean}) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype) << name_of(dtype);
  }
  EXPECT_EQ(name_of(bf16), "bf16");
  EXPECT_EQ(name_of(boolean), "bool");
}

TEST(DType, writes_code_bits_and_lanes_of_what_has_no_name) {
  const DType odd{10, 8, 4};
  EXPECT_EQ(name_of(odd), "10.8x4");
  EXPECT_EQ(parse_dtype("10.8x4"), odd);
}

TEST(DType, refuses_unknown_words) {
  for (const char* word : {"", "f31", "10.8", "10.8x", "10.8x1x", "300.8x1", "x"}) {
    EXPECT_EQ(parse_dtype(word).bits, 0) << word;
  }
}

TEST(Device, is_named_by_type_and_number) {
  EXPECT_EQ(name_of(Device{}), "cpu:0");
  EXPECT_EQ(name_of(Device{OPMUX_DEVICE_CUDA, 1}), "cuda:1");
  EXPECT_EQ(name_of(Device{OPMUX_DEVICE_OPENCL, 0}), "opencl:0");
  EXPECT_EQ(name_of(Device{OPMUX_DEVICE_METAL, 2}), "metal:2");
  EXPECT_EQ(name_of(Device{99, 2}), "device99:2");
}

}  // namespace
}  // namespace opmux
