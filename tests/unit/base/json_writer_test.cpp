#include "base/json_writer.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace opmux::base {
namespace {

std::string quoted(std::string_view text) { return JsonWriter().text(text).take(); }

TEST(JsonWriter, separates_members_and_elements) {
  JsonWriter json;
  json.open('{').key("a").open('[').number(int64_t{-1}).number(uint64_t{2}).open('{').close('}');
  json.close(']').key("b").boolean(true).key("c").texts({"x", "y"}).key("d").texts({}).close('}');
  EXPECT_EQ(json.take(), R"({"a":[-1,2,{}],"b":true,"c":["x","y"],"d":[]})");
}

TEST(JsonWriter, escapes_what_json_cannot_hold) {
  EXPECT_EQ(quoted("a\"b\\c\nd\te\x01\x7f"), R"("a\"b\\c\nd\u0009e\u0001\u007f")");
}

TEST(JsonWriter, keeps_utf8_of_every_length) {
  const std::string_view text = "\xC3\xA9 \xE2\x9C\x94 \xF0\x9F\x98\x80";
  EXPECT_EQ(quoted(text), "\"" + std::string(text) + "\"");
}

TEST(JsonWriter, replaces_bytes_that_are_not_utf8) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(quoted("a\xFF"), "\"a" + mark + "\"");
  EXPECT_EQ(quoted("\xC3"), "\"" + mark + "\"");                        // Truncated.
  EXPECT_EQ(quoted("\xC0\xAF"), "\"" + mark + mark + "\"");             // Overlong.
  EXPECT_EQ(quoted("\xE0\x80\x80"), "\"" + mark + mark + mark + "\"");  // Overlong.
  EXPECT_EQ(quoted("\xED\xA0\x80"), "\"" + mark + mark + mark + "\"");  // A surrogate.
  EXPECT_EQ(quoted("\xF0\x80\x80\x80z"), "\"" + mark + mark + mark + mark + "z\"");
  EXPECT_EQ(quoted("\xF4\x90\x80\x80"), "\"" + mark + mark + mark + mark + "\"");  // Too large.
}

TEST(JsonWriter, writes_numbers_that_read_back) {
  EXPECT_EQ(JsonWriter().number(0.1).take(), "0.1");
  EXPECT_EQ(JsonWriter().number(std::numeric_limits<uint64_t>::max()).take(),
            "18446744073709551615");
  EXPECT_EQ(JsonWriter().number(std::numeric_limits<double>::infinity()).take(), "null");
}

}  // namespace
}  // namespace opmux::base
