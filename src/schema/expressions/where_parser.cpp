#include "schema/expressions/where_parser.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "schema/expressions/expression_parser.hpp"

namespace opmux::schema {
namespace {

using base::concat;
using Op = WhereExpression::Op;

constexpr ExpressionLimits kWhereLimits{.nodes = WhereExpression::kMaxSteps, .depth = 32};

enum class Type : uint8_t { integer, boolean, enumeration };

std::string_view noun(Type type) {
  switch (type) {
    case Type::integer: return "an integer";
    case Type::boolean: return "a condition";
    case Type::enumeration: return "an enum";
  }
  return "nothing";
}

/// The reason to refuse a part of a condition that only policies have; empty for other parts.
std::string_view refusal(ExprOp op) {
  switch (op) {
    case ExprOp::text: return "where has no strings; write the words of an enum without quotes";
    case ExprOp::list:
    case ExprOp::in: return "where has no lists; combine comparisons with ||";
    case ExprOp::call: return "where has no functions, only dimensions, arguments and operators";
    case ExprOp::conditional: return "where has no '?'; combine conditions with && and ||";
    default: return {};
  }
}

bool is_equality(Op op) { return op == Op::equal || op == Op::not_equal; }
bool is_relation(Op op) { return op >= Op::equal && op <= Op::greater_equal; }
bool is_logical(Op op) { return op >= Op::logical_and && op <= Op::logical_not; }

/// Parses the tokens of a clause as an expression. The position of a node is the index of its
/// token, which has the line, the column and the spelling.
class WhereParser {
 public:
  WhereParser(TokenStream& tokens, Schema& schema) : tokens_(tokens), schema_(schema) {}

  bool run() {
    std::vector<ExpressionToken> all;
    do {
      clause_.push_back(tokens_.take());
      all.push_back(token_of(clause_.back()));
    } while (clause_.back().kind != TokenKind::end);
    auto parsed = parse_expression(std::move(all), kWhereLimits);
    if (const auto* problem = std::get_if<ExpressionProblem>(&parsed)) {
      return fail(problem->at, problem->limit ? "schema.limit" : "schema.syntax", problem->text);
    }
    tree_ = std::move(std::get<Expression>(parsed));
    meanings_.resize(tree_.nodes.size());
    if (!resolve(tree_.root) || !require(tree_.root, Type::boolean)) return false;
    emit_conjuncts(tree_.root);
    return true;
  }

 private:
  /// The step that a node becomes, and the type of its result.
  struct Meaning {
    WhereExpression::Step step;
    Type type = Type::integer;
  };

  bool fail(size_t at, std::string_view reason, std::string_view message) {
    return tokens_.fail(clause_[at], std::string(reason), message);
  }

  ExpressionToken token_of(const Token& token) const {
    using Kind = ExpressionToken::Kind;
    ExpressionToken made{.kind = Kind::sign, .at = clause_.size() - 1};
    made.text = token.text;
    if (token.kind == TokenKind::end) made.kind = Kind::end;
    if (token.kind == TokenKind::word) made.kind = is_name(token.text) ? Kind::name : Kind::word;
    if (token.kind == TokenKind::string) {
      made.kind = Kind::text;
      unquote(token.text, made.text);
    }
    if (token.kind == TokenKind::integer) {
      made.kind = Kind::integer;
      const char* const begin = token.text.data();
      const auto read = std::from_chars(begin, begin + token.text.size(), made.number);
      if (read.ec != std::errc()) made.number = UINT64_MAX;  // the parser refuses it
    }
    return made;
  }

  bool is_name(std::string_view word) const {
    const auto has_word = [&](const ArgSpec& arg) {
      return arg.name == word || std::ranges::find(arg.words, word) != arg.words.end();
    };
    return schema_.dim_index(word) >= 0 || std::ranges::any_of(schema_.args, has_word);
  }

  bool require(uint32_t node, Type type) {
    const Type found = meanings_[node].type;
    const size_t at = tree_[node].at;
    return found == type ||
           fail(at, "schema.where_type",
                concat("expected ", noun(type), ", '", clause_[at].text, "' is ", noun(found)));
  }

  /// Finds the meaning of a node and of all nodes below it.
  bool resolve(uint32_t index) {
    const Expression::Node& node = tree_[index];
    Meaning& meaning = meanings_[index];
    if (const std::string_view why = refusal(node.op); !why.empty()) {
      return fail(node.at, "schema.syntax", why);
    }
    if (node.op == ExprOp::name) return resolve_name(node, meaning);
    if (node.operands.empty()) {
      meaning.step.value = node.number;
      meaning.type = node.op == ExprOp::boolean ? Type::boolean : Type::integer;
      return true;
    }
    const Op op = meaning.step.op = step_of(node.op);
    meaning.type = is_relation(op) || is_logical(op) ? Type::boolean : Type::integer;
    const uint32_t left = node.operands.front(), right = node.operands.back();
    if (!resolve(left)) return false;
    const Type given = meanings_[left].type;
    if (is_equality(op) && given == Type::enumeration) return resolve_word(right, left);
    if (right != left && !resolve(right)) return false;
    const Type wanted = is_equality(op) ? given : is_logical(op) ? Type::boolean : Type::integer;
    return require(left, wanted) && require(right, wanted);
  }

  bool resolve_name(const Expression::Node& node, Meaning& meaning) {
    meaning.step = {Op::dim, schema_.dim_index(node.text), 0};
    if (meaning.step.index >= 0) return true;
    meaning.step = {Op::scalar, schema_.arg_index(node.text), 0};
    if (meaning.step.index < 0) return fail_unknown(node);
    switch (schema_.args[meaning.step.index].type) {
      case ArgType::integer: return true;
      case ArgType::boolean: meaning.type = Type::boolean; return true;
      case ArgType::enumeration: meaning.type = Type::enumeration; return true;
      default: break;
    }
    return fail(node.at, "schema.where_type",
                concat("'", node.text, "' cannot be used in where: only dimensions and int, bool ",
                       "and enum arguments can"));
  }

  bool fail_unknown(const Expression::Node& node) {
    std::vector<std::string_view> names(schema_.dims.begin(), schema_.dims.end());
    for (const ArgSpec& arg : schema_.args) names.push_back(arg.name);
    return fail(node.at, "schema.unknown_name",
                concat("no dimension or argument is called ", clause_[node.at].shown(),
                       base::suggestion(node.text, names)));
  }

  /// The right side of a comparison with an enum: a word, even if it is also a name or `true`.
  bool resolve_word(uint32_t right, uint32_t left) {
    const Expression::Node& node = tree_[right];
    if (node.op == ExprOp::call) return resolve(right);
    const Token& word = clause_[node.at];
    const std::vector<std::string>& words = schema_.args[meanings_[left].step.index].words;
    const auto found = std::ranges::find(words, word.text);
    if ((node.op != ExprOp::name && node.op != ExprOp::boolean) || found == words.end()) {
      return fail(node.at, "schema.enum_word",
                  concat("expected one of ", base::join(words, ", "), ", found ", word.shown(),
                         base::suggestion(word.text, words)));
    }
    meanings_[right] = {{Op::constant, 0, found - words.begin()}, Type::enumeration};
    return true;
  }

  void emit_conjuncts(uint32_t index) {
    const Expression::Node& node = tree_[index];
    if (node.op != ExprOp::logical_and) return emit(index, 0, schema_.where.emplace_back());
    for (const uint32_t operand : node.operands) emit_conjuncts(operand);
  }

  /// Appends steps and text of a subtree, in parentheses unless it binds tighter than `level`.
  void emit(uint32_t index, size_t level, WhereExpression& out) const {
    const Expression::Node& node = tree_[index];
    const std::string_view sign = clause_[node.at].text;
    const size_t binds = precedence(node.op);
    const bool enclosed = binds <= level;
    if (enclosed) out.text += '(';
    if (node.operands.size() == 2) {
      emit(node.operands[0], binds - 1, out);
      out.text += concat(' ', sign, ' ');
      emit(node.operands[1], binds, out);
    } else {
      out.text += node.number < 0 ? std::to_string(node.number) : sign;
      // A unary operator before another one parses back without parentheses.
      for (const uint32_t operand : node.operands) emit(operand, binds - 1, out);
    }
    if (enclosed) out.text += ')';
    out.steps.push_back(meanings_[index].step);
  }

  TokenStream& tokens_;
  Schema& schema_;
  std::vector<Token> clause_;
  Expression tree_;
  std::vector<Meaning> meanings_;  ///< by index of the node
};

}  // namespace

bool parse_where(TokenStream& tokens, Schema& schema) { return WhereParser(tokens, schema).run(); }

}  // namespace opmux::schema
