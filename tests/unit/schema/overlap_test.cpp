#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/schema/argument_list.hpp"

namespace opmux::schema {
namespace {

std::array<float, 64> memory;

TensorView at(size_t first, std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
  return {memory.data() + first, f32, shape, strides};
}

TEST(Overlap, is_a_byte_in_common) {
  EXPECT_TRUE(overlap(at(0, {8}), at(7, {8})));
  EXPECT_FALSE(overlap(at(0, {8}), at(8, {8})));
  EXPECT_TRUE(overlap(at(0, {}), at(0, {})));
}

TEST(Overlap, counts_strides_of_both_signs) {
  EXPECT_TRUE(overlap(at(0, {2}, {10}), at(10, {1})));
  EXPECT_FALSE(overlap(at(0, {2}, {10}), at(11, {1})));
  EXPECT_TRUE(overlap(at(20, {3}, {-10}), at(0, {1})));
  EXPECT_FALSE(overlap(at(20, {3}, {-9}), at(0, {1})));
}

TEST(Overlap, needs_elements_presence_and_one_device) {
  EXPECT_FALSE(overlap(at(0, {0}), at(0, {8})));
  EXPECT_FALSE(overlap(TensorView(), at(0, {8})));
  const TensorView elsewhere{memory.data(), f32, {8}, Device{OPMUX_DEVICE_CUDA, 0}};
  EXPECT_FALSE(overlap(elsewhere, at(0, {8})));
  const TensorView nowhere{static_cast<void*>(nullptr), f32, {8}};
  EXPECT_FALSE(overlap(nowhere, nowhere));
}

/// 8 floats in an OpenCL buffer, whose handle is not an address.
TensorView in_buffer(void* handle, uint64_t byte_offset) {
  int64_t shape[] = {8};
  return TensorView(opmux_tensor{handle,
                                 {OPMUX_DEVICE_OPENCL, 0},
                                 1,
                                 {OPMUX_DTYPE_FLOAT, 32, 1},
                                 shape,
                                 nullptr,
                                 byte_offset});
}

TEST(Overlap, in_memory_behind_handles_is_within_one_handle) {
  EXPECT_TRUE(overlap(in_buffer(&memory[0], 0), in_buffer(&memory[0], 28)));
  EXPECT_FALSE(overlap(in_buffer(&memory[0], 0), in_buffer(&memory[0], 32)));
  EXPECT_FALSE(overlap(in_buffer(&memory[0], 4), in_buffer(&memory[1], 0)));
  EXPECT_FALSE(in_buffer(&memory[0], 4).same_start(in_buffer(&memory[1], 0)));
  EXPECT_TRUE(in_buffer(&memory[0], 4).same_start(in_buffer(&memory[0], 4)));
}

TEST(Overlap, alignment_behind_a_handle_is_that_of_the_place) {
  EXPECT_EQ(alignment_of(in_buffer(memory.data() + 1, 0)), 4096);
  EXPECT_EQ(alignment_of(in_buffer(memory.data(), 48)), 16);
}

TEST(Overlap, survives_hostile_strides) {
  const std::vector<int64_t> shape(8, INT64_MAX), strides(8, INT64_MIN);
  EXPECT_TRUE(overlap(TensorView(memory.data(), f32, shape, strides), at(0, {8})));
}

Status check(std::string_view text, const ArgumentList& list) {
  const Schema schema = schema_of(text);
  Arguments arguments;
  if (Status status = list.normalise(schema, arguments); !status.ok()) return status;
  return check_overlap(schema, arguments);
}

TEST(CheckOverlap, refuses_an_output_over_anything_else) {
  const Status input =
      check("f(out Tensor y, Tensor x)", ArgumentList().tensor(at(0, {8})).tensor(at(4, {8})));
  EXPECT_EQ(input.reason(), "schema.overlap");
  EXPECT_EQ(input.message(), "f: 'y' is written and overlaps 'x'");
  EXPECT_EQ(check("f(inout Tensor a, inout Tensor b)",
                  ArgumentList().tensor(at(0, {8})).tensor(at(0, {8})))
                .reason(),
            "schema.overlap");
  EXPECT_EQ(check("f(out Tensor y, Tensor[] xs)",
                  ArgumentList().tensor(at(0, {8})).tensors({at(8, {8}), at(7, {2})}))
                .reason(),
            "schema.overlap");
}

TEST(CheckOverlap, lets_inputs_share_memory) {
  EXPECT_TRUE(check("f(out Tensor y, Tensor a, Tensor? b)",
                    ArgumentList().tensor(at(0, {8})).tensor(at(8, {8})).tensor(at(8, {8})))
                  .ok());
}

TEST(CheckOverlap, allows_declared_aliasing_only_if_exact) {
  constexpr std::string_view kAlias = "f(out(x) Tensor y[..., H], Tensor x[..., H])";
  EXPECT_TRUE(check(kAlias, ArgumentList().tensor(at(0, {2, 4})).tensor(at(0, {2, 4}))).ok());
  for (const TensorView& other :
       {at(1, {2, 4}), at(0, {8}), at(0, {2, 4}, {1, 2}), at(0, {4, 4})}) {
    const Status status = check(kAlias, ArgumentList().tensor(other).tensor(at(0, {2, 4})));
    EXPECT_EQ(status.message(),
              "f: 'y' is written and overlaps 'x'; only exactly the same memory, shape and strides "
              "are allowed");
  }
}

}  // namespace
}  // namespace opmux::schema
