#include <opmux/tensor.hpp>

#include <array>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace opmux {
namespace {

using Words = std::vector<int64_t>;

Words strides_of(const TensorView& view) { return {view.strides().begin(), view.strides().end()}; }

TEST(TensorView, is_row_major_unless_told_otherwise) {
  float data[24];
  const TensorView view{data, f32, {2, 3, 4}};
  EXPECT_EQ(strides_of(view), (Words{12, 4, 1}));
  EXPECT_EQ(view.elements(), 24);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view.data(), data);
}

TEST(TensorView, keeps_given_strides) {
  float data[12];
  const Words shape{3, 4}, strides{1, 3};
  const TensorView view{data, f32, shape, strides};
  EXPECT_EQ(strides_of(view), strides);
  EXPECT_FALSE(view.contiguous());
}

TEST(TensorView, of_rank_zero_has_one_element) {
  float data = 0;
  const TensorView view{&data, f32, {}};
  EXPECT_EQ(view.rank(), 0);
  EXPECT_EQ(view.elements(), 1);
  EXPECT_TRUE(view.contiguous());
}

TEST(TensorView, with_a_zero_dimension_is_empty_and_contiguous) {
  const TensorView view{static_cast<void*>(nullptr), f32, {3, 0, 4}};
  EXPECT_EQ(view.elements(), 0);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(strides_of(view), (Words{4, 4, 1}));
}

TEST(TensorView, ignores_the_stride_of_a_dimension_of_one) {
  float data[4];
  const Words shape{1, 4}, strides{777, 1};
  EXPECT_TRUE((TensorView{data, f32, shape, strides}.contiguous()));
}

TEST(TensorView, marks_what_it_cannot_represent) {
  float data[1];
  const Words nine(9, 1), two(2, 1), one(1, 1);
  EXPECT_EQ((TensorView{data, f32, nine, {}}.dim(0)), TensorView::kUnrepresentable);
  EXPECT_EQ((TensorView{data, f32, two, one}.dim(0)), TensorView::kUnrepresentable);
  EXPECT_LE((TensorView{data, f32, nine, {}}.rank()), OPMUX_MAX_RANK);
  int64_t shape[1] = {1};
  for (const int32_t ndim : {-1, 9, 1 << 30}) {
    opmux_tensor c{data, {1, 0}, ndim, {2, 32, 1}, shape, nullptr, 0};
    EXPECT_EQ(TensorView(c).dim(0), TensorView::kUnrepresentable) << ndim;
  }
  opmux_tensor no_shape{data, {1, 0}, 1, {2, 32, 1}, nullptr, nullptr, 0};
  EXPECT_EQ(TensorView(no_shape).dim(0), TensorView::kUnrepresentable);
}

TEST(TensorView, saturates_a_number_of_elements_that_does_not_fit) {
  const int64_t huge = int64_t{1} << 40;
  const TensorView view{static_cast<void*>(nullptr), f32, {huge, huge}};
  EXPECT_EQ(view.elements(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((TensorView{static_cast<void*>(nullptr), f32, {huge, huge, 0}}.elements()), 0);
}

TEST(TensorView, reads_a_c_tensor_with_null_strides_and_an_offset) {
  float data[8];
  int64_t shape[2] = {2, 3};
  const opmux_tensor c{data, {OPMUX_DEVICE_CUDA, 1}, 2, {2, 32, 1}, shape, nullptr, 8};
  const TensorView view(c);
  shape[0] = 99;
  EXPECT_EQ(view.dim(0), 2);
  EXPECT_EQ(strides_of(view), (Words{3, 1}));
  EXPECT_EQ(view.data(), data + 2);
  EXPECT_EQ(view.device(), (Device{OPMUX_DEVICE_CUDA, 1}));
}

TEST(TensorView, points_into_itself_after_a_copy) {
  float data[6];
  TensorView copy;
  EXPECT_FALSE(copy.present());
  {
    const TensorView original{data, f32, {2, 3}};
    copy = original;
  }
  EXPECT_TRUE(copy.present());
  EXPECT_EQ(copy.c().shape, copy.shape_words());
  EXPECT_EQ(copy.c().strides, copy.stride_words());
  EXPECT_EQ(copy.dim(1), 3);
}

}  // namespace
}  // namespace opmux
