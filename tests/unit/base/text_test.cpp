#include "base/text.hpp"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace opmux::base {
namespace {

constexpr std::array<std::string_view, 3> kTypes{"Tensor", "int", "float"};

TEST(Text, joins_words_and_numbers) {
  const std::vector<std::string> words{"a", "b"};
  const std::vector<int64_t> numbers{1, -2, 3};
  EXPECT_EQ(join(words, ", "), "a, b");
  EXPECT_EQ(join(kTypes, "|"), "Tensor|int|float");
  EXPECT_EQ(join(numbers, "x"), "1x-2x3");
  EXPECT_EQ(join(std::span<const int64_t>(), ", "), "");
}

TEST(Text, writes_the_shortest_number_that_reads_back) {
  EXPECT_EQ(number_text(1e-6), "1e-06");
  EXPECT_EQ(number_text(1.0), "1");
  EXPECT_EQ(number_text(0.1), "0.1");
}

TEST(Text, finds_the_nearest_word_through_each_kind_of_edit) {
  EXPECT_EQ(nearest("Tensr", kTypes), "Tensor");
  EXPECT_EQ(nearest("Tensoor", kTypes), "Tensor");
  EXPECT_EQ(nearest("tensor", kTypes), "Tensor");
  EXPECT_EQ(nearest("flaot", kTypes), "float");
}

TEST(Text, prefers_fewer_edits_and_then_the_first) {
  const std::vector<std::string> words{"abcx", "abcd", "abcy"};
  EXPECT_EQ(nearest("abcd", words), "abcd");
  EXPECT_EQ(nearest("abcz", words), "abcx");
}

TEST(Text, finds_nothing_for_a_word_unlike_all_others) {
  EXPECT_EQ(nearest("quantity", kTypes), "");
  EXPECT_EQ(nearest("", kTypes), "");
  EXPECT_EQ(nearest(std::string(100000, 'x'), kTypes), "");
  const std::vector<std::string> short_words{"a", ""};
  EXPECT_EQ(nearest("b", short_words), "");
}

TEST(Text, suggests_in_a_phrase_that_ends_a_message) {
  EXPECT_EQ(suggestion("Tensr", kTypes), "; did you mean 'Tensor'?");
  EXPECT_EQ(suggestion("quantity", kTypes), "");
}

TEST(Text, shows_control_characters_and_keeps_other_text) {
  EXPECT_EQ(without_controls("plain \t text\n"), "plain \t text\n");
  EXPECT_EQ(without_controls("a\x1b[31mb\r\x7f"), "a\\x1b[31mb\\x0d\\x7f");
  EXPECT_EQ(without_controls(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(without_controls("stra\xc3\x9f"
                             "e \xe2\x82\xac"),
            "stra\xc3\x9f"
            "e \xe2\x82\xac");
  EXPECT_EQ(without_controls("\xc2\x9b"
                             "31m"),
            "\\xc2\\x9b"
            "31m")
      << "an escape sequence in UTF-8";
  EXPECT_EQ(without_controls("\x9b"
                             "31m\xc3"),
            "\\x9b"
            "31m\\xc3")
      << "not UTF-8";
}

TEST(Text, concatenates_pieces_of_different_kinds) {
  EXPECT_EQ(concat("H is ", int64_t{4096}, ' ', std::string("in x")), "H is 4096 in x");
}

}  // namespace
}  // namespace opmux::base
