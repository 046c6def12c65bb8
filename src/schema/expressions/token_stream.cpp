#include "schema/expressions/token_stream.hpp"

#include <array>

#include "base/text.hpp"
#include "schema/schema.hpp"

namespace opmux::schema {
namespace {

using base::concat;

constexpr size_t kLongestText = 64 * 1024;
constexpr size_t kLongestShown = 40;

// A symbol comes before its prefixes, because the first match wins.
constexpr std::array<std::string_view, 28> kSymbols{
    "...", "&&", "||", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ",",
    "?",   "=",  "*",  ".",  "+",  "-",  "/",  "%", "!", "<", ">", ":", ";", "@"};

std::string shown_character(char c) {
  if (c >= ' ' && c <= '~') return concat('\'', c, '\'');
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return concat("byte 0x", kHex[byte >> 4], kHex[byte & 15]);
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    if (text_.size() > kLongestText) {
      return schema_error(
          Token{}, "schema.limit",
          concat("a schema has at most ", kLongestText, " bytes, this one has ", text_.size()));
    }
    std::vector<Token> tokens;
    while (true) {
      skip_blanks();
      Token token{TokenKind::end, {}, line_, column_};
      if (at_ < text_.size()) {
        if (Status status = read(token); !status.ok()) return status;
      }
      tokens.push_back(token);
      if (token.kind == TokenKind::end) return tokens;
    }
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void step() {
    ++column_;
    if (text_[at_++] != '\n') return;
    ++line_;
    column_ = 1;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '#') {
        while (at_ < text_.size() && peek() != '\n') step();
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        step();
      } else {
        return;
      }
    }
  }

  Status read(Token& token) {
    const size_t start = at_;
    Status status;
    if (is_word_start(peek())) {
      token.kind = TokenKind::word;
      while (is_word_part(peek())) step();
    } else if (is_digit(peek())) {
      status = read_number(token);
    } else if (peek() == '"') {
      status = read_string(token);
    } else {
      status = read_symbol(token);
    }
    token.text = text_.substr(start, at_ - start);
    return status;
  }

  Status read_number(Token& token) {
    token.kind = TokenKind::integer;
    read_digits();
    if (peek() == '.' && is_digit(peek(1))) {
      token.kind = TokenKind::real;
      step();
      read_digits();
    }
    const bool signed_exponent = (peek(1) == '-' || peek(1) == '+') && is_digit(peek(2));
    if ((peek() == 'e' || peek() == 'E') && (is_digit(peek(1)) || signed_exponent)) {
      token.kind = TokenKind::real;
      step();
      step();
      read_digits();
    }
    if (!is_word_part(peek())) return {};
    return schema_error(Token{TokenKind::end, {}, line_, column_}, "schema.syntax",
                        concat("expected the end of a number, found ", shown_character(peek())));
  }

  void read_digits() {
    while (is_digit(peek())) step();
  }

  Status read_string(Token& token) {
    token.kind = TokenKind::string;
    step();
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') {
      if (peek() == '\\' && at_ + 1 < text_.size()) step();
      step();
    }
    if (peek() != '"') return schema_error(token, "schema.syntax", "expected a closing '\"'");
    step();
    return {};
  }

  Status read_symbol(Token& token) {
    token.kind = TokenKind::symbol;
    for (const std::string_view symbol : kSymbols) {
      if (!text_.substr(at_).starts_with(symbol)) continue;
      for (size_t i = 0; i < symbol.size(); ++i) step();
      return {};
    }
    return schema_error(token, "schema.syntax", concat("unexpected ", shown_character(peek())));
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

std::string Token::shown() const {
  if (kind == TokenKind::end) return "the end";
  if (text.size() <= kLongestShown) return concat('\'', text, '\'');
  return concat('\'', text.substr(0, kLongestShown), "...'");
}

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

Status schema_error(const Token& at, std::string reason, std::string_view message) {
  return {Code::invalid_argument, std::move(reason),
          concat(at.line, ':', at.column, ": ", message)};
}

Token TokenStream::take() {
  const Token token = peek();
  if (token.kind != TokenKind::end) ++next_;
  return token;
}

bool TokenStream::accept(std::string_view word_or_symbol) {
  if (!at(word_or_symbol)) return false;
  take();
  return true;
}

bool TokenStream::expect(std::string_view symbol, std::string_view where) {
  return accept(symbol) || fail_expected(concat('\'', symbol, "' ", where));
}

bool TokenStream::fail(const Token& at, std::string reason, std::string_view message) {
  if (error_.ok()) error_ = schema_error(at, std::move(reason), message);
  return false;
}

bool TokenStream::fail_expected(std::string_view what) {
  return fail(peek(), "schema.syntax", concat("expected ", what, ", found ", peek().shown()));
}

}  // namespace opmux::schema
