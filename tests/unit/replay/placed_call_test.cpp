#include "replay/placed_call.hpp"

#include <cstring>

#include "replay/capture.hpp"

namespace opmux::replay {
namespace {

RecordedArgument floats(std::string name, std::vector<int64_t> shape, std::vector<int64_t> strides,
                        std::vector<float> values = {}) {
  RecordedArgument argument;
  argument.name = std::move(name);
  argument.tag = ArgTag::tensor;
  argument.tensor.dtype = f32;
  argument.tensor.shape = std::move(shape);
  argument.tensor.strides = std::move(strides);
  argument.tensor.alignment = 8;
  if (values.empty()) return argument;
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  keep_elements(argument.tensor, std::move(bytes), true);
  return argument;
}

uintptr_t address_of(const opmux_arg& arg) {
  return reinterpret_cast<uintptr_t>(arg.value.tensor->data);
}

TEST(PlacedCall, has_its_original_memory_layout) {
  const std::vector<RecordedArgument> arguments{
      floats("y", {2, 2}, {2, 1}),
      floats("x", {2, 2}, {-5, 1}, {1, 2, 3, 4}),
      {"eps", ArgTag::floating, {}, 0, 0.5, {}, {}},
      {"word", ArgTag::string, {}, 0, 0, "abc", {}},
      {"list", ArgTag::integer_list, {}, 0, 0, {}, {1, 2}},
      {"none", ArgTag::none, {}, 0, 0, {}, {}},
      {"n", ArgTag::integer, {}, 7, 0, {}, {}}};
  const auto placed = PlacedCall::place(arguments);
  ASSERT_TRUE(placed) << placed.error().to_string();
  const auto args = placed->arguments();
  ASSERT_EQ(args.size(), 7u);
  const auto* x = static_cast<const float*>(args[1].value.tensor->data);
  EXPECT_EQ(x[0], 1);
  EXPECT_EQ(x[-5], 3);
  EXPECT_NE(x[-3], x[-3]) << "a gap holds NaN";
  EXPECT_EQ(address_of(args[1]) % 16, 8u) << "no better aligned than it was";
  EXPECT_EQ(placed->elements(1), arguments[1].tensor.bytes);
  EXPECT_EQ(args[2].value.f64, 0.5);
  EXPECT_EQ(args[3].value.list.size, 3u);
  EXPECT_EQ(static_cast<const int64_t*>(args[4].value.list.data)[1], 2);
  EXPECT_EQ(args[5].tag, uint32_t{OPMUX_ARG_NONE});
  EXPECT_EQ(args[6].value.i64, 7);
}

TEST(PlacedCall, an_aliased_output_shares_memory_with_its_input) {
  std::vector<RecordedArgument> arguments{floats("y", {2}, {1}), floats("x", {2}, {1}, {1, 2})};
  arguments[0].tensor.same_as = "x";
  const auto together = PlacedCall::place(arguments);
  EXPECT_EQ(address_of(together->arguments()[0]), address_of(together->arguments()[1]));
  arguments[0].tensor.same_as.clear();
  const auto apart = PlacedCall::place(arguments);
  EXPECT_NE(address_of(apart->arguments()[0]), address_of(apart->arguments()[1]));
}

TEST(PlacedCall, refuses_what_is_too_large_or_elsewhere) {
  EXPECT_EQ(PlacedCall::place({floats("x", {1LL << 40}, {1})}).error().reason(), "replay.size");
  EXPECT_EQ(PlacedCall::place({floats("x", {2}, {INT64_MAX})}).error().reason(), "replay.size");
  EXPECT_EQ(PlacedCall::place({floats("x", {1LL << 40}, {0})}).error().reason(), "replay.size");
  RecordedArgument far = floats("x", {2}, {1});
  far.tensor.device = {OPMUX_DEVICE_CUDA, 0};
  EXPECT_EQ(PlacedCall::place({far}).error().reason(), "replay.device");
}

TEST(DrawnElements, are_the_same_for_the_same_file) {
  Recording recording;
  recording.arguments = {floats("y", {3}, {1}), floats("x", {3}, {1}),
                         floats("w", {2}, {1}, {1, 2}), floats("h", {5}, {1}),
                         floats("i", {5}, {1})};
  for (const size_t i : {1, 3, 4}) recording.arguments[i].tensor.contents = Contents::large;
  recording.arguments[3].tensor.dtype = f16;
  recording.arguments[4].tensor.dtype = i64;
  Recording again = recording;
  const auto drawn = draw_missing_elements(recording);
  ASSERT_TRUE(drawn);
  EXPECT_EQ(*drawn, (std::vector<std::string>{"x", "h", "i"}));
  ASSERT_TRUE(draw_missing_elements(again));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(recording.arguments[i].tensor.bytes, again.arguments[i].tensor.bytes);
  }
  EXPECT_EQ(recording.arguments[4].tensor.bytes, std::vector<std::byte>(40));
  EXPECT_TRUE(recording.complete());
  float x[3];
  std::memcpy(x, recording.arguments[1].tensor.bytes.data(), sizeof x);
  for (const float value : x) EXPECT_LE(std::abs(value), 2);
  EXPECT_NE(x[0], x[1]);
  EXPECT_EQ(parse_file(to_file(recording), "x").error().reason(), "replay.file") << "no operator";
}

TEST(DrawnElements, are_not_drawn_without_end) {
  Recording recording;
  recording.arguments = {floats("x", {1LL << 40}, {1})};
  recording.arguments[0].tensor.contents = Contents::large;
  EXPECT_EQ(draw_missing_elements(recording).error().reason(), "replay.size");
}

}  // namespace
}  // namespace opmux::replay
