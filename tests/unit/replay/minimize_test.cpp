#include "replay/minimize.hpp"

#include <cstring>
#include <numeric>

#include "replay/capture.hpp"
#include "replay/recording.hpp"

namespace opmux::replay {
namespace {

schema::Schema parsed_schema(std::string_view text) { return schema::parse_schema(text).value(); }

RecordedArgument int_tensor(std::string name, std::vector<int64_t> shape, bool read) {
  RecordedArgument argument;
  argument.name = std::move(name);
  argument.tag = ArgTag::tensor;
  argument.tensor.dtype = i32;
  argument.tensor.shape = shape;
  argument.tensor.strides = packed_strides(shape);
  if (!read) return argument;
  std::vector<int32_t> numbers(static_cast<size_t>(argument.tensor.elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<std::byte> bytes(numbers.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  keep_elements(argument.tensor, std::move(bytes), true);
  return argument;
}

struct Shrunk {
  Recording smallest;
  size_t asked = 0;

  Shrunk(std::string_view schema_text, std::vector<RecordedArgument> arguments,
         const StillWrong& wrong, size_t most = 1000) {
    Recording recording;
    recording.arguments = std::move(arguments);
    const schema::Schema schema = parsed_schema(schema_text);
    smallest = minimize(schema, std::move(recording), wrong, most, asked);
  }
  const std::vector<int64_t>& shape(size_t i) const { return smallest.arguments[i].tensor.shape; }
};

int64_t last_dim(const Recording& call, size_t i) { return call.arguments[i].tensor.shape.back(); }

using Shape = std::vector<int64_t>;
constexpr std::string_view kCopyRows = "copy(out Tensor y[..., H], Tensor x[..., H])";

TEST(Minimize, ends_at_the_smallest_tail) {
  const Shrunk shrunk(kCopyRows,
                      {int_tensor("y", {3, 40, 999}, false), int_tensor("x", {3, 40, 999}, true)},
                      [](const Recording& call) { return last_dim(call, 1) % 16 != 0; });
  EXPECT_EQ(shrunk.shape(0), (Shape{1, 1, 1}));
  EXPECT_EQ(shrunk.shape(1), (Shape{1, 1, 1}));
  EXPECT_LT(shrunk.asked, 40u);
}

TEST(Minimize, takes_small_steps_where_halves_are_right) {
  const Shrunk shrunk(kCopyRows,
                      {int_tensor("y", {7, 1000}, false), int_tensor("x", {7, 1000}, true)},
                      [](const Recording& call) { return last_dim(call, 1) > 130; });
  EXPECT_EQ(shrunk.shape(1), (Shape{1, 131}));
  EXPECT_LT(shrunk.asked, 60u);
}

TEST(Minimize, keeps_the_elements_of_first_rows_and_columns) {
  const Shrunk shrunk(kCopyRows, {int_tensor("y", {4, 10}, false), int_tensor("x", {4, 10}, true)},
                      [](const Recording& call) {
                        return call.arguments[1].tensor.shape[0] > 1 && last_dim(call, 1) > 2;
                      });
  EXPECT_EQ(shrunk.shape(1), (Shape{2, 3}));
  std::vector<int32_t> numbers(6);
  const RecordedTensor& x = shrunk.smallest.arguments[1].tensor;
  ASSERT_EQ(x.bytes.size(), 24u);
  std::memcpy(numbers.data(), x.bytes.data(), 24);
  EXPECT_EQ(numbers, (std::vector<int32_t>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(x.strides, (Shape{3, 1}));
}

TEST(Minimize, shrinks_together_what_a_condition_ties) {
  const Shrunk twice("gate(out Tensor y[..., H], Tensor x[..., H2]) where H2 == 2 * H",
                     {int_tensor("y", {2, 48}, false), int_tensor("x", {2, 96}, true)},
                     [](const Recording& call) { return last_dim(call, 0) > 4; });
  EXPECT_EQ(twice.shape(0), (Shape{1, 5}));
  EXPECT_EQ(twice.shape(1), (Shape{1, 10}));
  const Shrunk beside("starts(out Tensor y[B], Tensor x[B1]) where B1 == B + 1",
                      {int_tensor("y", {8}, false), int_tensor("x", {9}, true)},
                      [](const Recording& call) { return last_dim(call, 0) > 2; });
  EXPECT_EQ(beside.shape(0), (Shape{3}));
  EXPECT_EQ(beside.shape(1), (Shape{4}));
}

TEST(Minimize, never_asks_about_what_the_schema_refuses) {
  const Shrunk shrunk("heads(out Tensor y[HQ], Tensor x[HKV]) where HQ % HKV == 0",
                      {int_tensor("y", {32}, false), int_tensor("x", {8}, true)},
                      [](const Recording& call) {
                        EXPECT_EQ(last_dim(call, 0) % last_dim(call, 1), 0);
                        return last_dim(call, 1) >= 4;
                      });
  EXPECT_EQ(shrunk.shape(1), (Shape{4}));
  EXPECT_EQ(shrunk.shape(0), (Shape{4}));
}

TEST(Minimize, gaps_between_rows_stay) {
  RecordedArgument wide = int_tensor("x", {4, 10}, true);
  wide.tensor.strides = {32, 1};
  const Shrunk shrunk(kCopyRows, {int_tensor("y", {4, 10}, false), wide},
                      [](const Recording& call) { return last_dim(call, 1) > 3; });
  EXPECT_EQ(shrunk.smallest.arguments[1].tensor.strides, (Shape{32, 1}));
  EXPECT_EQ(shrunk.smallest.arguments[0].tensor.strides, (Shape{4, 1}));
}

TEST(Minimize, stops_at_the_limit_of_attempts) {
  const Shrunk shrunk(
      kCopyRows, {int_tensor("y", {64, 64}, false), int_tensor("x", {64, 64}, true)},
      [](const Recording&) { return true; }, 3);
  EXPECT_EQ(shrunk.asked, 3u);
  EXPECT_EQ(shrunk.shape(1), (Shape{8, 64}));
}

}  // namespace
}  // namespace opmux::replay
