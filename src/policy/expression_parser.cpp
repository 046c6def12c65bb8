#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "policy/expression.hpp"
#include "policy/expression_lexer.hpp"

namespace opmux::policy {
namespace {

using TokenKind = ExpressionToken::Kind;

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
    if (!failed_ && peek().kind != TokenKind::end) after_the_end();
    if (failed_) return std::move(problem_);
    return std::move(expression_);
  }

 private:
  const ExpressionToken& peek() const { return tokens_[next_]; }
  bool at(std::string_view text) const {
    const ExpressionToken& token = peek();
    return (token.kind == TokenKind::sign || token.kind == TokenKind::word) && token.text == text;
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
      case TokenKind::end: return "the end";
      case TokenKind::integer: return "a number";
      case TokenKind::text: return base::concat("the string \"", peek().text.substr(0, 40), "\"");
      default: return base::concat("'", peek().text.substr(0, 40), "'");
    }
  }

  void after_the_end() {
    const std::string& text = peek().text;
    if (peek().kind == TokenKind::sign && (text == "." || text == "[")) {
      fail(peek().at,
           base::concat("'", text,
                        "' is not supported in conditions: values have no fields, methods "
                        "or elements"));
    } else if (peek().kind == TokenKind::word && is_english(text)) {
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
    if (peek().kind == TokenKind::integer && peek().number == kLowest) {
      ++next_;
      return add({.op = ExprOp::integer, .at = at, .number = std::numeric_limits<int64_t>::min()});
    }
    return add({.op = ExprOp::negate, .at = at, .operands = {unary()}});
  }

  uint32_t primary() {
    const ExpressionToken& token = peek();
    switch (token.kind) {
      case TokenKind::integer: return integer(token);
      case TokenKind::text:
        ++next_;
        return add({.op = ExprOp::text, .at = token.at, .text = token.text});
      case TokenKind::word: return word(token);
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

}  // namespace opmux::policy
