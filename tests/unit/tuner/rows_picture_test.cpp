#include "tuner/rows_picture.hpp"

#include "rows.hpp"

namespace opmux::tuner {
namespace {

using testing::row;
using testing::set_of;

size_t count_of(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(RowsPicture, has_a_band_for_each_row_and_a_mark_where_the_fastest_changes) {
  tune::TuningRow slow = row(0.7, 0.05, 5, 95);
  slow.implementation.id = "ref.loop";
  const std::string picture =
      picture_of(set_of({row(0.001, 0.002, 1, 4), row(-0.8, 0.02, 5, 95), slow}), "");
  EXPECT_TRUE(picture.starts_with("<svg ")) << picture;
  EXPECT_TRUE(picture.ends_with("</svg>\n"));
  EXPECT_EQ(count_of(picture, "fill-opacity"), 3u);
  EXPECT_EQ(count_of(picture, "class='mark'"), 1u) << "at 5";
  EXPECT_EQ(count_of(picture, ">matmul f32,f32,f32 K=2048 N=2048 threads=1 eager<"), 1u);
  EXPECT_EQ(count_of(picture, ">ref.loop<"), 1u) << "in the legend";
  EXPECT_EQ(count_of(picture, ">openblas.gemm<"), 2u) << "in the legend and at the mark";
  EXPECT_EQ(count_of(picture, ">1/4x<"), 1u) << "on the axis";
  EXPECT_EQ(count_of(picture, "prefers-color-scheme:dark"), 1u);
}

TEST(RowsPicture, has_a_panel_for_each_cell_of_the_operator) {
  tune::TuningRow other = row();
  other.cell.threads = 2;
  tune::TuningSet set = set_of({row(), other});
  set.operators.push_back({"linear", 5, 0, {row()}});
  EXPECT_EQ(count_of(picture_of(set, ""), "font-weight='bold'"), 3u);
  EXPECT_EQ(count_of(picture_of(set, "matmul"), "font-weight='bold'"), 2u);
  EXPECT_EQ(picture_of(set, "softmax"), "");
}

TEST(RowsPicture, has_nothing_for_cells_without_a_varying_dimension) {
  tune::TuningRow fixed = row();
  fixed.range = {};
  EXPECT_EQ(picture_of(set_of({fixed}), ""), "");
}

TEST(RowsPicture, texts_of_rows_are_no_markup) {
  tune::TuningRow hostile = row();
  hostile.implementation.id = "<script>&x";
  const std::string picture = picture_of(set_of({hostile}), "");
  EXPECT_EQ(picture.find("<script>"), std::string::npos);
  EXPECT_NE(picture.find("&lt;script>&amp;x"), std::string::npos);
}

}  // namespace
}  // namespace opmux::tuner
