#include "replay/recording.hpp"

#include <array>
#include <cstring>
#include <numeric>

namespace opmux::replay {
namespace {

std::vector<int32_t> gathered(const int32_t* first, std::vector<int64_t> shape,
                              std::vector<int64_t> strides) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<int32_t> packed(static_cast<size_t>(count));
  gather(reinterpret_cast<const std::byte*>(first), shape, strides, sizeof(int32_t),
         reinterpret_cast<std::byte*>(packed.data()));
  return packed;
}

TEST(Elements, are_gathered_row_by_row) {
  std::array<int32_t, 24> memory{};
  std::iota(memory.begin(), memory.end(), 0);
  EXPECT_EQ(gathered(memory.data(), {2, 3}, {4, 1}), (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(gathered(memory.data(), {2, 3}, {1, 4}), (std::vector<int32_t>{0, 4, 8, 1, 5, 9}));
  EXPECT_EQ(gathered(&memory[5], {3}, {-2}), (std::vector<int32_t>{5, 3, 1}));
  EXPECT_EQ(gathered(memory.data(), {2, 2}, {0, 1}), (std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(gathered(&memory[7], {}, {}), (std::vector<int32_t>{7}));
  EXPECT_EQ(gathered(nullptr, {2, 0, 3}, {0, 0, 1}), (std::vector<int32_t>{}));
}

TEST(Elements, are_scattered_to_where_they_were) {
  std::array<int32_t, 24> from{}, to{};
  std::iota(from.begin(), from.end(), 1);
  const std::vector<int64_t> shape{2, 3, 2}, strides{12, 4, 1};
  const std::vector<int32_t> packed = gathered(from.data(), shape, strides);
  scatter(reinterpret_cast<const std::byte*>(packed.data()), shape, strides, sizeof(int32_t),
          reinterpret_cast<std::byte*>(to.data()));
  EXPECT_EQ(gathered(to.data(), shape, strides), packed);
  EXPECT_EQ(to[2], 0);
}

TEST(Elements, know_how_far_they_reach) {
  ElementRange range;
  const auto reach = [&](std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return range_of(shape, strides, range);
  };
  EXPECT_TRUE(reach({2, 3}, {-4, 1}));
  EXPECT_EQ(range.lowest, -4);
  EXPECT_EQ(range.highest, 2);
  EXPECT_TRUE(reach({0, INT64_MAX}, {INT64_MAX, INT64_MAX}));
  EXPECT_EQ(range.highest, 0);
  EXPECT_FALSE(reach({INT64_MAX}, {3}));
  EXPECT_FALSE(reach({INT64_MAX, INT64_MAX}, {1, 1}));
}

TEST(Elements, of_a_view_are_without_gaps) {
  const std::array<float, 6> memory{1, 2, 3, 4, 5, 6};
  const std::array<int64_t, 2> shape{2, 2}, strides{3, 1};
  const TensorView view(const_cast<float*>(memory.data()), f32, shape, strides);
  const std::vector<std::byte> bytes = elements_of(view);
  std::array<float, 4> got{};
  ASSERT_EQ(bytes.size(), sizeof got);
  std::memcpy(got.data(), bytes.data(), sizeof got);
  EXPECT_EQ(got, (std::array<float, 4>{1, 2, 4, 5}));
}

}  // namespace
}  // namespace opmux::replay
