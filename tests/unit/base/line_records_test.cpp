#include "base/line_records.hpp"

#include <gtest/gtest.h>

namespace opmux::base {
namespace {

constexpr std::string_view kOddText = " a\tb\nc\\d \\t";

TEST(LineRecords, read_back_texts_with_separators_and_newlines) {
  const std::string tabs = record("kind", kOddText, "", true, -7);
  EXPECT_EQ(tabs, "kind\t a\\tb\\nc\\\\d \\\\t\t\t1\t-7");
  const std::string spaces = record<' '>("kind", kOddText, "", true, -7);
  EXPECT_EQ(spaces, "kind \\sa\\tb\\nc\\\\d\\s\\\\t  1 -7");
  for (RecordFields fields : {RecordFields(tabs), RecordFields(spaces, ' ')}) {
    EXPECT_EQ(fields.left(), 5u);
    EXPECT_EQ(fields.text(), "kind");
    EXPECT_EQ(fields.text(), kOddText);
    EXPECT_EQ(fields.text(), "");
    EXPECT_EQ(fields.count(), 1u);
    EXPECT_EQ(fields.left(), 1u);
    EXPECT_EQ(fields.integer<int8_t>(), -7);
    EXPECT_EQ(fields.left(), 0u);
    EXPECT_TRUE(fields.good());
  }
}

TEST(LineRecords, read_missing_fields_as_empty) {
  RecordFields fields("kind");
  EXPECT_EQ(fields.text(), "kind");
  EXPECT_EQ(fields.left(), 0u);
  EXPECT_EQ(fields.text(), "");
  EXPECT_EQ(fields.number(), 0);
  EXPECT_TRUE(fields.good());
}

TEST(LineRecords, refuse_malformed_fields) {
  for (const char* const number : {"", "x", "1x", " 1", "256", "-1"}) {
    RecordFields fields(number);
    fields.integer<uint8_t>();
    EXPECT_FALSE(fields.good()) << number;
  }
  for (const char* const text : {"a\\", "a\\x", "\\ "}) {
    RecordFields fields(text);
    fields.text();
    EXPECT_FALSE(fields.good()) << text;
  }
}

TEST(CheckedLine, shows_any_change_of_its_text) {
  const std::string line = checked_line("some words");
  const std::string_view whole = std::string_view(line).substr(0, line.size() - 1);
  EXPECT_EQ(text_of_checked(whole), "some words");
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(text_of_checked(whole.substr(0, i)));
    std::string changed(whole);
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(text_of_checked(changed)) << changed;
  }
}

TEST(SealedText, shows_any_change_of_its_title_and_body) {
  const std::string whole = sealed_text("some file 1", "a body\nof two lines\n");
  EXPECT_EQ(body_of_sealed("some file 1", whole), "a body\nof two lines\n");
  EXPECT_FALSE(body_of_sealed("some file 2", whole));
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(body_of_sealed("some file 1", std::string_view(whole).substr(0, i))) << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(body_of_sealed("some file 1", changed)) << i;
  }
}

}  // namespace
}  // namespace opmux::base
