#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::schema {

enum class TokenKind : uint8_t { word, integer, real, string, symbol, end };

/// One token; `text` points into the schema text. Lines and columns start at 1 and count bytes.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  int line = 1;
  int column = 1;

  bool is(std::string_view word_or_symbol) const {
    return (kind == TokenKind::word || kind == TokenKind::symbol) && text == word_or_symbol;
  }
  /// The token as messages quote it: "'Tensr'", "the end".
  std::string shown() const;
};

/// Splits schema text into tokens; `#` starts a comment that extends to the end of the line.
Result<std::vector<Token>> tokenize(std::string_view text);

/// An error whose message starts with line and column: "1:14: ...".
Status schema_error(const Token& at, std::string reason, std::string_view message);

/// Tokens with a read position and the first error. Functions that return bool return false after
/// an error, so that callers can stop at once.
class TokenStream {
 public:
  /// `tokens` must end with a token of kind `end`.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek() const { return tokens_[next_]; }
  /// Returns the current token and advances, except past the end.
  Token take();
  bool at(std::string_view word_or_symbol) const { return peek().is(word_or_symbol); }
  bool accept(std::string_view word_or_symbol);
  /// Takes `symbol` or fails with "expected 'symbol' `where`, found ...".
  bool expect(std::string_view symbol, std::string_view where);

  bool fail(const Token& at, std::string reason, std::string_view message);
  /// Fails with "expected `what`, found ...".
  bool fail_expected(std::string_view what);
  const Status& error() const { return error_; }

 private:
  std::vector<Token> tokens_;
  size_t next_ = 0;
  Status error_;
};

}  // namespace opmux::schema
