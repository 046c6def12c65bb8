#include "schema/where_parser.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "schema/schema_parser.hpp"

namespace opmux::schema {
namespace {

using base::concat;
using Op = WhereExpression::Op;

constexpr int kDeepest = 32;

enum class Type : uint8_t { integer, boolean, enumeration };

std::string_view noun(Type type) {
  switch (type) {
    case Type::integer: return "an integer";
    case Type::boolean: return "a condition";
    case Type::enumeration: return "an enum";
  }
  return "nothing";
}

struct Operator {
  std::string_view text;
  Op op;
  int level;  ///< precedence: higher binds tighter
  Type operands;
  Type result;
};

constexpr int kUnaryLevel = 6, kLeafLevel = 7;
constexpr std::array kOperators{
    Operator{"||", Op::logical_or, 1, Type::boolean, Type::boolean},
    Operator{"&&", Op::logical_and, 2, Type::boolean, Type::boolean},
    Operator{"==", Op::equal, 3, Type::integer, Type::boolean},
    Operator{"!=", Op::not_equal, 3, Type::integer, Type::boolean},
    Operator{"<", Op::less, 3, Type::integer, Type::boolean},
    Operator{"<=", Op::less_equal, 3, Type::integer, Type::boolean},
    Operator{">", Op::greater, 3, Type::integer, Type::boolean},
    Operator{">=", Op::greater_equal, 3, Type::integer, Type::boolean},
    Operator{"+", Op::add, 4, Type::integer, Type::integer},
    Operator{"-", Op::subtract, 4, Type::integer, Type::integer},
    Operator{"*", Op::multiply, 5, Type::integer, Type::integer},
    Operator{"/", Op::divide, 5, Type::integer, Type::integer},
    Operator{"%", Op::modulo, 5, Type::integer, Type::integer},
};

const Operator* binary_operator(const Token& token) {
  const auto* found = std::find_if(kOperators.begin(), kOperators.end(),
                                   [&](const Operator& o) { return token.is(o.text); });
  return found == kOperators.end() ? nullptr : found;
}

bool is_equality(Op op) { return op == Op::equal || op == Op::not_equal; }

struct Node {
  Op op = Op::constant;
  Type type = Type::integer;
  int left = -1;
  int right = -1;
  int index = 0;
  int64_t value = 0;
  std::string_view text;  ///< spelling of a leaf or an operator
  int level = kLeafLevel;
  Token at;
};

/// Builds a tree first, because canonical text and splitting at && need one. Nodes refer to each
/// other by index in one vector; -1 = error.
class WhereParser {
 public:
  WhereParser(TokenStream& tokens, Schema& schema) : tokens_(tokens), schema_(schema) {}

  bool run() {
    const int root = parse_binary(1, 0);
    if (root < 0 || !require(root, Type::boolean)) return false;
    emit_conjuncts(root);
    return true;
  }

 private:
  int fail(const Token& at, std::string_view reason, std::string_view message) {
    tokens_.fail(at, std::string(reason), message);
    return -1;
  }

  bool require(int node, Type type) {
    const Node& found = nodes_[node];
    if (found.type == type) return true;
    return tokens_.fail(
        found.at, "schema.where_type",
        concat("expected ", noun(type), ", '", found.text, "' is ", noun(found.type)));
  }

  int add(Node node) {
    if (nodes_.size() >= WhereExpression::kMaxSteps) {
      return fail(node.at, "schema.limit",
                  concat("a where clause has at most ", WhereExpression::kMaxSteps,
                         " names, numbers and operators"));
    }
    nodes_.push_back(node);
    return static_cast<int>(nodes_.size()) - 1;
  }

  int parse_binary(int lowest_level, int depth) {
    int left = parse_unary(depth);
    while (left >= 0) {
      const Operator* found = binary_operator(tokens_.peek());
      if (found == nullptr || found->level < lowest_level) return left;
      const Token at = tokens_.take();
      const int right = is_equality(found->op) && nodes_[left].type == Type::enumeration
                            ? parse_enum_word(nodes_[left].index)
                            : parse_binary(found->level + 1, depth + 1);
      left = right < 0 ? -1 : combine(*found, at, left, right);
    }
    return left;
  }

  int combine(const Operator& found, const Token& at, int left, int right) {
    const Type given = nodes_[left].type;
    const Type wanted = is_equality(found.op) ? given : found.operands;
    if (!require(left, wanted) || !require(right, wanted)) return -1;
    return add({found.op, found.result, left, right, 0, 0, found.text, found.level, at});
  }

  int parse_unary(int depth) {
    if (depth > kDeepest)
      return fail(tokens_.peek(), "schema.limit", "the where clause is nested too deeply");
    const bool negates = tokens_.at("-"), inverts = tokens_.at("!");
    if (!negates && !inverts) return parse_primary(depth);
    const Token at = tokens_.take();
    const Type type = negates ? Type::integer : Type::boolean;
    const int operand = parse_unary(depth + 1);
    if (operand < 0 || !require(operand, type)) return -1;
    const Op op = negates ? Op::negate : Op::logical_not;
    return add({op, type, operand, -1, 0, 0, at.text, kUnaryLevel, at});
  }

  int parse_primary(int depth) {
    const Token& next = tokens_.peek();
    if (next.kind == TokenKind::integer) return parse_integer();
    if (next.kind == TokenKind::word) return parse_name();
    if (!tokens_.accept("(")) {
      tokens_.fail_expected("a dimension, an argument, a number or '('");
      return -1;
    }
    const int inner = parse_binary(1, depth + 1);
    if (inner < 0 || !tokens_.expect(")", "to close '('")) return -1;
    return inner;
  }

  int parse_integer() {
    const Token at = tokens_.peek();
    Node node{.text = at.text, .at = at};
    return schema::parse_integer(tokens_, node.value) ? add(node) : -1;
  }

  int parse_name() {
    const Token at = tokens_.take();
    Node node{.text = at.text, .at = at};
    if (at.is("true") || at.is("false")) {
      node.type = Type::boolean;
      node.value = at.is("true") ? 1 : 0;
      return add(node);
    }
    if (const int dim = schema_.dim_index(at.text); dim >= 0) {
      node.op = Op::dim;
      node.index = dim;
      return add(node);
    }
    const int arg = schema_.arg_index(at.text);
    if (arg < 0) return fail_unknown(at);
    return parse_scalar(node, arg);
  }

  int parse_scalar(Node node, int arg) {
    node.op = Op::scalar;
    node.index = arg;
    switch (schema_.args[arg].type) {
      case ArgType::integer: return add(node);
      case ArgType::boolean: node.type = Type::boolean; return add(node);
      case ArgType::enumeration: node.type = Type::enumeration; return add(node);
      default: break;
    }
    return fail(node.at, "schema.where_type",
                concat("'", node.text, "' cannot be used in where: only dimensions and int, bool ",
                       "and enum arguments can"));
  }

  int fail_unknown(const Token& at) {
    std::vector<std::string_view> names(schema_.dims.begin(), schema_.dims.end());
    for (const ArgSpec& arg : schema_.args) names.push_back(arg.name);
    return fail(at, "schema.unknown_name",
                concat("no dimension or argument is called ", at.shown(),
                       base::suggestion(at.text, names)));
  }

  int parse_enum_word(int arg) {
    const Token at = tokens_.take();
    const std::vector<std::string>& words = schema_.args[arg].words;
    const auto found = std::find(words.begin(), words.end(), at.text);
    if (at.kind != TokenKind::word || found == words.end()) {
      return fail(at, "schema.enum_word",
                  concat("expected one of ", base::join(words, ", "), ", found ", at.shown(),
                         base::suggestion(at.text, words)));
    }
    return add(
        {.type = Type::enumeration, .value = found - words.begin(), .text = at.text, .at = at});
  }

  void emit_conjuncts(int node) {
    if (nodes_[node].op == Op::logical_and) {
      emit_conjuncts(nodes_[node].left);
      emit_conjuncts(nodes_[node].right);
      return;
    }
    WhereExpression& conjunct = schema_.where.emplace_back();
    emit(node, 0, conjunct);
  }

  /// Appends steps and text of a subtree, in parentheses unless it binds tighter than `level`.
  void emit(int place, int level, WhereExpression& out) {
    const Node& node = nodes_[place];
    const bool enclosed = node.level <= level;
    if (enclosed) out.text += '(';
    if (node.left < 0) {
      out.text += node.text;
    } else if (node.right < 0) {
      out.text += node.text;
      // A unary operator before another one parses back without parentheses.
      emit(node.left, kUnaryLevel - 1, out);
    } else {
      emit(node.left, node.level - 1, out);
      out.text += concat(' ', node.text, ' ');
      emit(node.right, node.level, out);
    }
    if (enclosed) out.text += ')';
    out.steps.push_back({node.op, node.index, node.value});
  }

  TokenStream& tokens_;
  Schema& schema_;
  std::vector<Node> nodes_;
};

}  // namespace

bool parse_where(TokenStream& tokens, Schema& schema) { return WhereParser(tokens, schema).run(); }

}  // namespace opmux::schema
