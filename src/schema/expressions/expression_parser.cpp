#include "schema/expressions/expression_parser.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "base/text.hpp"

namespace opmux::schema {
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

/// Operators of other languages, and those to write instead.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kForeign{
    {{"and", "&&"},
     {"or", "||"},
     {"not", "!"},
     {"not_in", "!(x in [...])"},
     {"is", "=="},
     {"if", "condition ? one : other"},
     {"=", "=="}}};

bool is_unary(ExprOp op) { return op == ExprOp::negate || op == ExprOp::logical_not; }

/// Recursive-descent parser. Functions return the index of the node they made. After an error their
/// result is meaningless and no more tokens are read.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<ExpressionToken> tokens, ExpressionLimits limits)
      : tokens_(std::move(tokens)), limits_(limits) {}

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

  uint32_t fail(size_t at, std::string text, bool limit = false) {
    if (!failed_) problem_ = {.at = at, .text = std::move(text), .limit = limit};
    failed_ = true;
    return 0;
  }
  uint32_t expected(std::string_view what) {
    return fail(peek().at, base::concat("expected ", what, ", found ", shown_token()));
  }
  std::string shown_token() const {
    switch (peek().kind) {
      case ExpressionToken::Kind::end: return "the end";
      case ExpressionToken::Kind::integer:
      case ExpressionToken::Kind::real: return "a number";
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
    } else if (!refuse_foreign(peek())) {
      expected("an operator or the end");
    }
  }
  /// Fails and returns true if the token is an operator of another language.
  bool refuse_foreign(const ExpressionToken& token) {
    using Kind = ExpressionToken::Kind;
    const auto* const found =
        std::ranges::find(kForeign, token.text, [](const auto& pair) { return pair.first; });
    if (found == kForeign.end() || (token.kind != Kind::word && token.kind != Kind::sign)) {
      return false;
    }
    fail(token.at, base::concat("'", token.text, "' is not an operator of conditions; write ",
                                found->second));
    return true;
  }

  uint32_t add(Expression::Node node) {
    if (expression_.nodes.size() >= limits_.nodes) {
      return fail(node.at,
                  base::concat("the condition has more than ", limits_.nodes,
                               " names, numbers and operators"),
                  true);
    }
    expression_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(expression_.nodes.size() - 1);
  }

  /// Parses an operand that is one level deeper than the current one.
  uint32_t deeper(uint32_t (ExpressionParser::*operand)()) {
    if (depth_ == limits_.depth) {
      return fail(peek().at, base::concat("nested more than ", limits_.depth, " deep"), true);
    }
    ++depth_;
    const uint32_t result = (this->*operand)();
    --depth_;
    return result;
  }

  uint32_t conditional() {
    const uint32_t condition = binary(0);
    const size_t at = peek().at;
    if (!accept("?")) return condition;
    const uint32_t yes = binary(0);
    if (!accept(":")) return expected("':' and the other value");
    const uint32_t no = deeper(&ExpressionParser::conditional);
    return add({.op = ExprOp::conditional, .at = at, .operands = {condition, yes, no}});
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
    const size_t at = peek().at;
    if (accept("-")) return negative(at);
    if (!accept("!")) return primary();
    return add(
        {.op = ExprOp::logical_not, .at = at, .operands = {deeper(&ExpressionParser::unary)}});
  }

  /// -2^63 has no positive counterpart, so it is parsed together with its sign.
  uint32_t negative(size_t at) {
    constexpr uint64_t kLowest = uint64_t{1} << 63;
    if (peek().kind == ExpressionToken::Kind::integer && peek().number == kLowest) {
      ++next_;
      return add({.op = ExprOp::integer, .at = at, .number = std::numeric_limits<int64_t>::min()});
    }
    return add({.op = ExprOp::negate, .at = at, .operands = {deeper(&ExpressionParser::unary)}});
  }

  uint32_t primary() {
    const ExpressionToken& token = peek();
    switch (token.kind) {
      case ExpressionToken::Kind::integer: return integer(token);
      case ExpressionToken::Kind::real:
        ++next_;
        return add(
            {.op = ExprOp::real, .at = token.at, .number = static_cast<int64_t>(token.number)});
      case ExpressionToken::Kind::text:
        ++next_;
        return add({.op = ExprOp::text, .at = token.at, .text = token.text});
      case ExpressionToken::Kind::word:
      case ExpressionToken::Kind::name: return word(token);
      default: break;
    }
    if (accept("(")) {
      const uint32_t inner = deeper(&ExpressionParser::conditional);
      if (!accept(")")) return expected("')'");
      return inner;
    }
    if (at("[")) return list(token.at);
    if (at("{")) return fail(token.at, "maps are not supported in conditions");
    return expected("a value such as a name or a number");
  }

  uint32_t integer(const ExpressionToken& token) {
    if (token.number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return fail(token.at, "this number does not fit into 64 bits with a sign", true);
    }
    ++next_;
    return add(
        {.op = ExprOp::integer, .at = token.at, .number = static_cast<int64_t>(token.number)});
  }

  uint32_t word(const ExpressionToken& token) {
    ++next_;
    const bool name = token.kind == ExpressionToken::Kind::name;
    if (token.text == "true" || token.text == "false") {
      return add({.op = ExprOp::boolean, .at = token.at, .number = token.text == "true" ? 1 : 0});
    }
    if (!name && token.text == "null")
      return fail(token.at, "null is not supported in conditions; use has(x)");
    if (!name && token.text == "in") return fail(token.at, "'in' is not a value");
    if (refuse_foreign(token)) return 0;
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
      all.push_back(deeper(&ExpressionParser::conditional));
    } while (accept(","));
    if (!failed_ && !accept(closing)) expected(expectation);
    return all;
  }

  std::vector<ExpressionToken> tokens_;
  const ExpressionLimits limits_;
  size_t next_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  ExpressionProblem problem_;
  Expression expression_;
};

}  // namespace

WhereExpression::Op step_of(Expression::Op op) {
  using Step = WhereExpression::Op;
  switch (op) {
    case ExprOp::negate: return Step::negate;
    case ExprOp::logical_not: return Step::logical_not;
    case ExprOp::logical_and: return Step::logical_and;
    case ExprOp::logical_or: return Step::logical_or;
    case ExprOp::add: return Step::add;
    case ExprOp::subtract: return Step::subtract;
    case ExprOp::multiply: return Step::multiply;
    case ExprOp::divide: return Step::divide;
    case ExprOp::modulo: return Step::modulo;
    case ExprOp::equal: return Step::equal;
    case ExprOp::not_equal: return Step::not_equal;
    case ExprOp::less: return Step::less;
    case ExprOp::less_equal: return Step::less_equal;
    case ExprOp::greater: return Step::greater;
    case ExprOp::greater_equal: return Step::greater_equal;
    case ExprOp::conditional: return Step::conditional;
    default: return Step::constant;
  }
}

size_t precedence(Expression::Op op) {
  for (size_t level = 0; level < kBinding.size(); ++level) {
    const auto has_op = [op](const Sign& sign) { return sign.op == op; };
    if (std::ranges::any_of(kBinding[level], has_op)) return level + 1;
  }
  return kBinding.size() + (is_unary(op) ? 1 : 2);
}

std::variant<Expression, ExpressionProblem> parse_expression(std::vector<ExpressionToken> tokens,
                                                             ExpressionLimits limits) {
  return ExpressionParser(std::move(tokens), limits).parse();
}

std::variant<Expression, ExpressionProblem> parse_expression(std::string_view text) {
  if (text.size() > kLongestExpression) {
    return ExpressionProblem{.text = base::concat("the condition has ", text.size(),
                                                  " bytes; the limit is ", kLongestExpression)};
  }
  ExpressionProblem problem;
  auto tokens = cut_expression(text, problem);
  if (!tokens) return problem;
  return parse_expression(std::move(*tokens), {});
}

}  // namespace opmux::schema
