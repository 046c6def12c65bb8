#include "schema/expression_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
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
    if ((peek() == '.' && is_digit(peek(1))) || peek() == 'e' || peek() == 'E') {
      return fail(start, "floating-point numbers are not supported in conditions");
    }
    if (peek() == 'u' || peek() == 'U') {
      return fail(at_, "unsigned numbers are not supported in conditions; leave out the u");
    }
    if (is_word_part(peek())) return fail(start, "letters directly after a number");
    token.kind = Kind::integer;
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

namespace {

struct Sign {
  std::string_view text;
  ExprOp op;
};

/// Binary operators by precedence, lowest first; all are left-associative.
constexpr std::array<Sign, 1> kOr{{{"||", ExprOp::logical_or}}};
constexpr std::array<Sign, 1> kAnd{{{"&&", ExprOp::logical_and}}};
constexpr std::array<Sign, 7> kRelations{{{"==", ExprOp::equal},
                                          {"!=", ExprOp::not_equal},
                                          {"<", ExprOp::less},
                                          {"<=", ExprOp::less_equal},
                                          {">", ExprOp::greater},
                                          {">=", ExprOp::greater_equal},
                                          {"in", ExprOp::in}}};
constexpr std::array<Sign, 2> kSums{{{"+", ExprOp::add}, {"-", ExprOp::subtract}}};
constexpr std::array<Sign, 3> kProducts{
    {{"*", ExprOp::multiply}, {"/", ExprOp::divide}, {"%", ExprOp::modulo}}};
constexpr std::array<std::span<const Sign>, 5> kBinding{kOr, kAnd, kRelations, kSums, kProducts};

constexpr std::array<std::string_view, 3> kNoNames{"in", "true", "false"};
constexpr std::array<std::string_view, 6> kEnglish{"and", "or", "not", "not_in", "is", "if"};

/// Recursive-descent parser. Functions return the index of the node they made. After an error their
/// result is meaningless and no more tokens are read.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<ExpressionToken> tokens) : tokens_(std::move(tokens)) {}

  std::variant<Expression, ExpressionProblem> parse() {
    expression_.root = conditional();
    if (!failed_ && peek().kind != ExpressionToken::Kind::end) after_the_end();
    if (failed_) return std::move(problem_);
    return std::move(expression_);
  }

 private:
  const ExpressionToken& peek() const { return tokens_[next_]; }
  bool at(std::string_view text) const {
    const ExpressionToken& token = peek();
    return (token.kind == ExpressionToken::Kind::sign ||
            token.kind == ExpressionToken::Kind::word) &&
           token.text == text;
  }
  bool accept(std::string_view text) {
    if (failed_ || !at(text)) return false;
    ++next_;
    return true;
  }

  uint32_t fail(size_t at, std::string text) {
    if (!failed_) problem_ = {at, std::move(text)};
    failed_ = true;
    return 0;
  }
  uint32_t expected(std::string_view what) {
    return fail(peek().at, base::concat("expected ", what, ", found ", shown_token()));
  }
  std::string shown_token() const {
    switch (peek().kind) {
      case ExpressionToken::Kind::end: return "the end";
      case ExpressionToken::Kind::integer: return "a number";
      case ExpressionToken::Kind::text:
        return base::concat("the string \"", peek().text.substr(0, 40), "\"");
      default: return base::concat("'", peek().text.substr(0, 40), "'");
    }
  }

  void after_the_end() {
    const std::string& text = peek().text;
    if (peek().kind == ExpressionToken::Kind::sign && (text == "." || text == "[")) {
      fail(peek().at,
           base::concat("'", text,
                        "' is not supported in conditions: values have no fields, methods "
                        "or elements"));
    } else if (peek().kind == ExpressionToken::Kind::word && is_english(text)) {
      fail(peek().at, english_hint(text));
    } else {
      expected("an operator or the end");
    }
  }
  static bool is_english(std::string_view text) {
    return std::find(kEnglish.begin(), kEnglish.end(), text) != kEnglish.end();
  }
  static std::string english_hint(std::string_view text) {
    const std::string_view sign = text == "and"      ? "&&"
                                  : text == "or"     ? "||"
                                  : text == "not"    ? "!"
                                  : text == "not_in" ? "!(x in [...])"
                                  : text == "is"     ? "=="
                                                     : "condition ? one : other";
    return base::concat("'", text, "' is not an operator of conditions; write ", sign);
  }

  uint32_t add(Expression::Node node) {
    if (expression_.nodes.size() >= kMostExpressionNodes) {
      return fail(node.at, base::concat("the condition has more than ", kMostExpressionNodes,
                                        " names, numbers and operators"));
    }
    expression_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(expression_.nodes.size() - 1);
  }

  uint32_t conditional() {
    if (++depth_ > kDeepestExpression) {
      return fail(peek().at, base::concat("nested more than ", kDeepestExpression, " deep"));
    }
    uint32_t result = binary(0);
    const size_t at = peek().at;
    if (accept("?")) {
      const uint32_t yes = binary(0);
      if (!accept(":")) return expected("':' and the other value");
      const uint32_t no = conditional();
      result = add({.op = ExprOp::conditional, .at = at, .operands = {result, yes, no}});
    }
    --depth_;
    return result;
  }

  uint32_t binary(size_t level) {
    if (level == kBinding.size()) return unary();
    uint32_t left = binary(level + 1);
    while (!failed_) {
      const std::span<const Sign> signs = kBinding[level];
      const auto sign = std::find_if(signs.begin(), signs.end(),
                                     [this](const Sign& one) { return at(one.text); });
      if (sign == signs.end()) break;
      const size_t at = tokens_[next_++].at;
      const uint32_t right = binary(level + 1);
      left = add({.op = sign->op, .at = at, .operands = {left, right}});
    }
    return left;
  }

  uint32_t unary() {
    if (failed_) return 0;
    if (++depth_ > kDeepestExpression) {
      return fail(peek().at, base::concat("nested more than ", kDeepestExpression, " deep"));
    }
    const size_t at = peek().at;
    uint32_t result = 0;
    if (accept("!")) {
      result = add({.op = ExprOp::logical_not, .at = at, .operands = {unary()}});
    } else if (accept("-")) {
      result = negative(at);
    } else {
      result = primary();
    }
    --depth_;
    return result;
  }

  /// -2^63 has no positive counterpart, so it is parsed together with its sign.
  uint32_t negative(size_t at) {
    constexpr uint64_t kLowest = uint64_t{1} << 63;
    if (peek().kind == ExpressionToken::Kind::integer && peek().number == kLowest) {
      ++next_;
      return add({.op = ExprOp::integer, .at = at, .number = std::numeric_limits<int64_t>::min()});
    }
    return add({.op = ExprOp::negate, .at = at, .operands = {unary()}});
  }

  uint32_t primary() {
    const ExpressionToken& token = peek();
    switch (token.kind) {
      case ExpressionToken::Kind::integer: return integer(token);
      case ExpressionToken::Kind::text:
        ++next_;
        return add({.op = ExprOp::text, .at = token.at, .text = token.text});
      case ExpressionToken::Kind::word: return word(token);
      default: break;
    }
    if (accept("(")) {
      const uint32_t inner = conditional();
      if (!accept(")")) return expected("')'");
      return inner;
    }
    if (at("[")) return list(token.at);
    if (at("{")) return fail(token.at, "maps are not supported in conditions");
    return expected("a name, a number, a string or '('");
  }

  uint32_t integer(const ExpressionToken& token) {
    if (token.number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return fail(token.at, "this number does not fit into 64 bits with a sign");
    }
    ++next_;
    return add(
        {.op = ExprOp::integer, .at = token.at, .number = static_cast<int64_t>(token.number)});
  }

  uint32_t word(const ExpressionToken& token) {
    ++next_;
    if (token.text == "true" || token.text == "false") {
      return add({.op = ExprOp::boolean, .at = token.at, .number = token.text == "true" ? 1 : 0});
    }
    if (token.text == "null")
      return fail(token.at, "null is not supported in conditions; use has(x)");
    if (std::find(kNoNames.begin(), kNoNames.end(), token.text) != kNoNames.end()) {
      return fail(token.at, base::concat("'", token.text, "' is not a value"));
    }
    if (is_english(token.text)) return fail(token.at, english_hint(token.text));
    if (!accept("(")) return add({.op = ExprOp::name, .at = token.at, .text = token.text});
    return add({.op = ExprOp::call,
                .at = token.at,
                .text = token.text,
                .operands = items(")", "',' or ')'")});
  }

  uint32_t list(size_t at) {
    ++next_;
    return add({.op = ExprOp::list, .at = at, .operands = items("]", "',' or ']'")});
  }

  std::vector<uint32_t> items(std::string_view closing, std::string_view expectation) {
    std::vector<uint32_t> all;
    if (accept(closing)) return all;
    do {
      if (!all.empty() && at("]") && closing == "]") break;  // CEL allows a comma at the end
      all.push_back(conditional());
    } while (accept(","));
    if (!failed_ && !accept(closing)) expected(expectation);
    return all;
  }

  std::vector<ExpressionToken> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  ExpressionProblem problem_;
  Expression expression_;
};

}  // namespace

std::variant<Expression, ExpressionProblem> parse_expression(std::string_view text) {
  if (text.size() > kLongestExpression) {
    return ExpressionProblem{0, base::concat("the condition has ", text.size(),
                                             " bytes; the limit is ", kLongestExpression)};
  }
  ExpressionProblem problem;
  auto tokens = cut_expression(text, problem);
  if (!tokens) return problem;
  return ExpressionParser(std::move(*tokens)).parse();
}

}  // namespace opmux::schema
