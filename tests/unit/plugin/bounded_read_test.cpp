#include "plugin/read/bounded_read.hpp"

#include <gtest/gtest.h>

namespace opmux::plugin {
namespace {

std::string reason_of(opmux_str text, Lines lines = Lines::one) {
  return std::string(read_text(text, "text", lines).error().reason());
}

TEST(BoundedRead, copies_plain_text_and_utf_8) {
  EXPECT_EQ(read_text(opmux_str_of("plain"), "text").value(), "plain");
  EXPECT_EQ(read_text(opmux_str_of("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x99\x82"), "text")
                .value()
                .size(),
            15u);
  EXPECT_EQ(read_text({nullptr, 0}, "text").value(), "");
}

TEST(BoundedRead, refuses_text_at_null_or_too_long) {
  EXPECT_EQ(reason_of({nullptr, 3}), "plugin.string");
  EXPECT_EQ(reason_of({"x", kLongestText + 1}), "plugin.string");
  EXPECT_EQ(reason_of({"x", SIZE_MAX}), "plugin.string");
}

TEST(BoundedRead, refuses_control_characters) {
  for (const char* bad : {"a\x01", "a\x7f", "a\x1b[0m", "a\r", "\xc2\x85"}) {
    EXPECT_EQ(reason_of(opmux_str_of(bad)), "plugin.string") << bad;
    EXPECT_EQ(reason_of(opmux_str_of(bad), Lines::many), "plugin.string") << bad;
  }
  EXPECT_EQ(reason_of({"a\0b", 3}), "plugin.string");
}

TEST(BoundedRead, allows_line_ends_where_they_belong) {
  EXPECT_EQ(reason_of(opmux_str_of("a\n\tb")), "plugin.string");
  EXPECT_EQ(reason_of(opmux_str_of("a\n\tb"), Lines::many), "");
}

TEST(BoundedRead, refuses_malformed_utf_8) {
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe2\x82", "\xff", "\xf0\x80\x80\xaf"}) {
    EXPECT_EQ(reason_of(opmux_str_of(bad)), "plugin.string") << bad;
  }
}

struct Item {
  uint32_t struct_size;
  uint32_t a;
  uint64_t b;
};
struct LongerItem {
  Item item;
  uint64_t c;
};

Result<std::vector<Item>> read(const void* data, uint32_t count, uint32_t stride) {
  return read_array(static_cast<const Item*>(data), count, stride, 8, "items");
}

TEST(BoundedRead, reads_longer_and_shorter_structs_than_its_own) {
  const LongerItem longer[] = {{{sizeof(LongerItem), 1, 2}, 3}, {{sizeof(LongerItem), 4, 5}, 6}};
  const auto from_longer = read(longer, 2, sizeof(LongerItem));
  ASSERT_TRUE(from_longer);
  EXPECT_EQ((*from_longer)[1].a, 4u);
  EXPECT_EQ((*from_longer)[1].b, 5u);

  const uint32_t shorter[] = {8, 7, 8, 9};
  const auto from_shorter = read(shorter, 2, 8);
  ASSERT_TRUE(from_shorter);
  EXPECT_EQ((*from_shorter)[1].a, 9u);
  EXPECT_EQ((*from_shorter)[1].b, 0u);
}

TEST(BoundedRead, refuses_arrays_whose_head_is_wrong) {
  const Item one{sizeof(Item), 1, 2};
  EXPECT_TRUE(read(nullptr, 0, 0));
  EXPECT_EQ(read(&one, kMostItems + 1, sizeof(Item)).error().reason(), "plugin.count");
  EXPECT_EQ(read(nullptr, 1, sizeof(Item)).error().reason(), "plugin.null");
  EXPECT_EQ(read(&one, 1, 0).error().reason(), "plugin.stride");
  EXPECT_EQ(read(&one, 1, 4).error().reason(), "plugin.stride");
  EXPECT_EQ(read(&one, 1, 17).error().reason(), "plugin.stride");
  EXPECT_EQ(read(&one, 1, kLargestStride + 8).error().reason(), "plugin.stride");
}

TEST(BoundedRead, refuses_elements_with_a_wrong_size) {
  for (const uint32_t size : {0u, 4u, 24u, UINT32_MAX}) {
    const Item one{size, 1, 2};
    const Status bad = read(&one, 1, sizeof(Item)).error();
    EXPECT_EQ(bad.reason(), "plugin.struct_size") << size;
  }
  const Item one{3, 1, 2};
  EXPECT_EQ(read(&one, 1, sizeof(Item)).error().message(),
            "items 1 has a struct_size of 3 bytes; it must be 8 to 16");
}

}  // namespace
}  // namespace opmux::plugin
