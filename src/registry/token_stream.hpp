#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <opmux/status.hpp>

namespace opmux::registry {

enum class TokenKind : uint8_t { word, integer, real, string, symbol, end };

/// A piece of schema text; `text` points into it. Lines and columns count from 1, in bytes.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  int line = 1;
  int column = 1;

  bool is(std::string_view word_or_symbol) const {
    return (kind == TokenKind::word || kind == TokenKind::symbol) && text == word_or_symbol;
  }
  /// How a message calls it: "'Tensr'", "the end".
  std::string shown() const;
};

/// Cuts schema text into tokens; `#` starts a comment that ends with its line.
Result<std::vector<Token>> tokenize(std::string_view text);

/// A failure that starts with its place: "1:14: ...".
Status schema_error(const Token& at, std::string reason, std::string_view message);

/// Tokens with a place to read at and the first error that was met. The functions that return
/// bool return false after an error, so that callers can stop at once.
class TokenStream {
 public:
  /// `tokens` ends with one of kind `end`.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek() const { return tokens_[next_]; }
  /// The current token; the end is never passed.
  Token take();
  bool at(std::string_view word_or_symbol) const { return peek().is(word_or_symbol); }
  bool accept(std::string_view word_or_symbol);
  /// `where` completes "expected ')' ...".
  bool expect(std::string_view symbol, std::string_view where);

  bool fail(const Token& at, std::string reason, std::string_view message);
  /// "expected `what`, found ...".
  bool fail_expected(std::string_view what);
  const Status& error() const { return error_; }

 private:
  std::vector<Token> tokens_;
  size_t next_ = 0;
  Status error_;
};

}  // namespace opmux::registry
