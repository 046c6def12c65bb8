#include "schema/expressions/expression_parser.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "base/text.hpp"
#include "schema/schema.hpp"

namespace opmux::schema {
namespace {

/// Appends a code point in UTF-8.
void append_code_point(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    text.push_back(static_cast<char>(0xC0 | code >> 6));
    text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    text.push_back(static_cast<char>(0xE0 | code >> 12));
    text.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

/// Splits a text into tokens from left to right and stops at the first error.
class ExpressionLexer {
 public:
  ExpressionLexer(std::string_view text, ExpressionProblem& problem)
      : text_(text), problem_(problem) {}

  std::optional<std::vector<ExpressionToken>> cut() {
    for (skip_space(); at_ < text_.size(); skip_space()) {
      ExpressionToken token;
      token.at = at_;
      if (!cut_one(token)) return std::nullopt;
      tokens_.push_back(std::move(token));
    }
    tokens_.push_back({.at = text_.size()});
    return std::move(tokens_);
  }

 private:
  using Kind = ExpressionToken::Kind;

  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view(" \t\r\n\f").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  bool fail(size_t at, std::string text) {
    problem_ = {at, std::move(text)};
    return false;
  }

  bool cut_one(ExpressionToken& token) {
    const char c = peek();
    if (is_digit(c)) return cut_number(token);
    if (c == '.' && is_digit(peek(1))) return cut_real(token);
    if (c == '"' || c == '\'') return cut_text(token, false);
    if ((c == 'r' || c == 'R') && (peek(1) == '"' || peek(1) == '\'')) {
      ++at_;
      return cut_text(token, true);
    }
    if ((c == 'b' || c == 'B') && (peek(1) == '"' || peek(1) == '\'')) {
      return fail(at_, "byte strings are not supported in conditions; leave out the b");
    }
    return is_word_start(c) ? cut_word(token) : cut_sign(token);
  }

  bool cut_number(ExpressionToken& token) {
    const size_t start = at_;
    const bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    if (hex) at_ += 2;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(begin, end, token.number, hex ? 16 : 10);
    at_ = static_cast<size_t>(rest - text_.data());
    if (error == std::errc::result_out_of_range) {
      return fail(start, "this number does not fit into 64 bits");
    }
    if (rest == begin) return fail(start, "expected digits after 0x");
    if (!hex && ((peek() == '.' && is_digit(peek(1))) || peek() == 'e' || peek() == 'E')) {
      at_ = start;
      return cut_real(token);
    }
    if (peek() == 'u' || peek() == 'U') {
      return fail(at_, "unsigned numbers are not supported in conditions; leave out the u");
    }
    if (is_word_part(peek())) return fail(start, "letters directly after a number");
    token.kind = Kind::integer;
    return true;
  }

  bool cut_real(ExpressionToken& token) {
    const size_t start = at_;
    double value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    at_ = static_cast<size_t>(rest - text_.data());
    if (error == std::errc::result_out_of_range) {
      return fail(start, "this number is outside the range of a float of 64 bits");
    }
    if (is_word_part(peek())) return fail(start, "letters directly after a number");
    token.kind = Kind::real;
    token.number = std::bit_cast<uint64_t>(value);
    return true;
  }

  bool cut_word(ExpressionToken& token) {
    const size_t start = at_;
    while (is_word_part(peek())) ++at_;
    token.kind = Kind::word;
    token.text = text_.substr(start, at_ - start);
    return true;
  }

  bool cut_sign(ExpressionToken& token) {
    constexpr std::array<std::string_view, 6> kLong{"&&", "||", "==", "!=", "<=", ">="};
    constexpr std::string_view kShort = "<>!+-*/%()[],?:.{}";
    token.kind = Kind::sign;
    for (const std::string_view sign : kLong) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      token.text = sign;
      at_ += sign.size();
      return true;
    }
    const char c = peek();
    if (kShort.find(c) == kShort.npos) return fail(at_, unknown_sign(c));
    token.text = c;
    ++at_;
    return true;
  }

  static std::string unknown_sign(char c) {
    switch (c) {
      case '=': return "'=' is not an operator; use '==' for equality";
      case '&': return "'&' is not an operator; use '&&' for and";
      case '|': return "'|' is not an operator; use '||' for or";
      default: break;
    }
    const bool printable = c > ' ' && c <= '~';
    return printable ? base::concat("'", c, "' is not allowed in conditions")
                     : base::concat("the byte ", int{static_cast<unsigned char>(c)},
                                    " is not allowed in conditions");
  }

  bool cut_text(ExpressionToken& token, bool raw) {
    const size_t start = token.at;
    const char quote = text_[at_++];
    token.kind = Kind::text;
    if (peek() == quote && peek(1) == quote) {
      return fail(start, "triple-quoted strings are not supported in conditions");
    }
    while (peek() != quote) {
      if (at_ >= text_.size() || peek() == '\n')
        return fail(start, "this string has no closing quote");
      if (peek() == '\\' && !raw) {
        if (!cut_escape(token.text)) return false;
      } else {
        token.text.push_back(text_[at_++]);
      }
    }
    ++at_;
    return true;
  }

  bool cut_escape(std::string& into) {
    constexpr std::string_view kNames = "abfnrtv\\?\"'`", kMeant = "\a\b\f\n\r\t\v\\?\"'`";
    const size_t start = at_++;
    const char name = peek();
    if (const size_t found = kNames.find(name); found != kNames.npos) {
      into.push_back(kMeant[found]);
      ++at_;
      return true;
    }
    if (name == 'x' || name == 'X') return cut_code(into, start, 1, 2, 16);
    if (name == 'u') return cut_code(into, start, 1, 4, 16);
    if (name >= '0' && name <= '3') return cut_code(into, start, 0, 3, 8);
    return fail(start,
                "this escape is not supported in conditions; use \\n, \\t, \\\\, \\\", \\', "
                "\\x41 or \\u0041");
  }

  bool cut_code(std::string& into, size_t start, size_t skip, size_t digits, int base) {
    at_ += skip;
    const std::string_view code = text_.substr(at_, digits);
    const char* const begin = code.data();
    uint32_t value = 0;
    const auto read = std::from_chars(begin, begin + code.size(), value, base);
    if (code.size() != digits || read.ptr != begin + digits ||
        (value >= 0xD800 && value < 0xE000)) {
      return fail(start,
                  base::concat("this escape needs ", digits, " digits of a valid character"));
    }
    append_code_point(into, value);
    at_ += digits;
    return true;
  }

  std::string_view text_;
  ExpressionProblem& problem_;
  size_t at_ = 0;
  std::vector<ExpressionToken> tokens_;
};

}  // namespace

std::optional<std::vector<ExpressionToken>> cut_expression(std::string_view text,
                                                           ExpressionProblem& problem) {
  return ExpressionLexer(text, problem).cut();
}

}  // namespace opmux::schema
