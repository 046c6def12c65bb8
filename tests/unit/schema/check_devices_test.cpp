#include <gtest/gtest.h>

#include "tests/unit/schema/argument_list.hpp"

namespace opmux::schema {
namespace {

constexpr std::string_view kAdd = "add(out Tensor y[N], Tensor x[N], Tensor? z[N])";

TensorView on(Device device) { return {static_cast<void*>(nullptr), f32, {4}, device}; }

Status check_devices(std::string_view text, const ArgumentList& list) {
  const Schema schema = schema_of(text);
  Arguments arguments;
  if (Status status = list.normalise(schema, arguments); !status.ok()) return status;
  BoundDims dims;
  return check_arguments(schema, arguments, dims);
}

ArgumentList three(Device y, Device x, Device z) {
  ArgumentList list;
  list.tensor(on(y)).tensor(on(x)).tensor(on(z));
  return list;
}

constexpr Device kCpu, kCuda{OPMUX_DEVICE_CUDA, 0};
constexpr Device kPinned{3, 1}, kManaged{13, 0};  // DLPack's kDLCUDAHost and kDLCUDAManaged

void expect_mismatch(const ArgumentList& list, std::string_view message) {
  const Status status = check_devices(kAdd, list);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), "schema.device_mismatch");
  EXPECT_EQ(status.message(), message);
}

TEST(CheckDevices, refuses_tensors_on_two_devices) {
  expect_mismatch(three(kCpu, kCuda, kCpu),
                  "add: 'y' is on cpu:0 and 'x' on cuda:0; all tensors of a call must be on one "
                  "device");
  expect_mismatch(three(kCuda, kCuda, kCpu),
                  "add: 'y' is on cuda:0 and 'z' on cpu:0; all tensors of a call must be on one "
                  "device");
  expect_mismatch(three(kCpu, {77, 0}, kCpu),
                  "add: 'y' is on cpu:0 and 'x' on device77:0; all tensors of a call must be on "
                  "one device");
}

TEST(CheckDevices, refuses_two_devices_of_one_type) {
  expect_mismatch(three(kCpu, {OPMUX_DEVICE_CPU, 1}, kCpu),
                  "add: 'y' is on cpu:0 and 'x' on cpu:1; all tensors of a call must be on one "
                  "device");
  EXPECT_TRUE(check_devices(kAdd, three({OPMUX_DEVICE_CUDA, 2}, {OPMUX_DEVICE_CUDA, 2},
                                        {OPMUX_DEVICE_CUDA, 2}))
                  .ok());
}

TEST(CheckDevices, accepts_memory_that_the_processor_shares_with_a_device) {
  EXPECT_TRUE(check_devices(kAdd, three(kCpu, kPinned, kCpu)).ok());
  EXPECT_TRUE(check_devices(kAdd, three(kCpu, kManaged, kPinned)).ok());
  EXPECT_TRUE(check_devices(kAdd, three(kCuda, kManaged, kCuda)).ok());
  EXPECT_FALSE(check_devices(kAdd, three(kManaged, kCuda, kCpu)).ok());
  EXPECT_FALSE(check_devices(kAdd, three(kCuda, kPinned, kCuda)).ok());
}

TEST(CheckDevices, skips_absent_tensors_and_checks_those_of_lists) {
  EXPECT_TRUE(check_devices(kAdd, ArgumentList().tensor(on(kCuda)).tensor(on(kCuda)).none()).ok());
  constexpr std::string_view kCat = "cat(out Tensor y[N], Tensor[] xs)";
  const Status status =
      check_devices(kCat, ArgumentList().tensor(on(kCpu)).tensors({on(kCpu), on(kCuda)}));
  EXPECT_EQ(status.reason(), "schema.device_mismatch");
  EXPECT_TRUE(
      check_devices(kCat, ArgumentList().tensor(on(kCuda)).tensors({on(kCuda), on(kCuda)})).ok());
}

TEST(CheckDevices, accepts_several_devices_if_the_schema_says_so) {
  const std::string mixed = "# Copies to another device.\n#! mixed_devices\n" + std::string(kAdd);
  EXPECT_TRUE(check_devices(mixed, three(kCpu, kCuda, {OPMUX_DEVICE_CPU, 1})).ok());
  EXPECT_EQ(schema_of(mixed).canonical(), schema_of(kAdd).canonical());
  EXPECT_FALSE(schema_of("#! mixed_devices_not\n" + std::string(kAdd)).mixed_devices);
  EXPECT_FALSE(schema_of(kAdd).mixed_devices);
}

TEST(CheckData, refuses_null_pointers_of_tensors_with_elements_only) {
  const Schema schema = schema_of(kAdd);
  float some[4] = {};
  const TensorView here(some, f32, {4}), nowhere(static_cast<void*>(nullptr), f32, {4}),
      empty(static_cast<void*>(nullptr), f32, {0});
  const auto check_of = [&](const TensorView& y, const TensorView& x) {
    ArgumentList list;
    Arguments arguments;
    EXPECT_TRUE(list.tensor(y).tensor(x).normalise(schema, arguments).ok());
    return check_data(schema, arguments);
  };
  EXPECT_TRUE(check_of(here, here).ok());
  EXPECT_TRUE(check_of(empty, empty).ok());
  const Status status = check_of(here, nowhere);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.reason(), "schema.null_data");
  EXPECT_EQ(status.message(), "add: 'x' [4] has elements, but its data pointer is null");
}

}  // namespace
}  // namespace opmux::schema
