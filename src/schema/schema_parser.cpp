#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "schema/expressions/token_stream.hpp"
#include "schema/expressions/where_parser.hpp"
#include "schema/schema.hpp"

namespace opmux::schema {
namespace {

using base::concat;

constexpr size_t kMaxListDefault = 64;

/// Takes a token of kind `integer` and stores its value; returns false if it does not fit.
bool parse_integer(TokenStream& tokens, int64_t& number, bool negative = false) {
  const Token token = tokens.take();
  const std::string text = concat(negative ? "-" : "", token.text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc()) return true;
  return tokens.fail(token, "schema.limit", concat(token.shown(), " does not fit in 64 bits"));
}

/// Parses "= value" after an argument whose type is known, if it follows. `= none` after an
/// optional argument means the same as no default.
class DefaultParser {
 public:
  explicit DefaultParser(TokenStream& tokens) : tokens_(tokens) {}

  bool run(ArgSpec& arg) {
    if (!tokens_.accept("=")) return true;
    const Token at = tokens_.peek();
    const bool has_such_word =
        std::find(arg.words.begin(), arg.words.end(), "none") != arg.words.end();
    if (at.is("none") && arg.optional && !has_such_word) {
      tokens_.take();
      return true;
    }
    DefaultValue value;
    if (!parse_value(arg, at, value)) return false;
    value.point_inside();
    arg.default_value = value;
    return true;
  }

 private:
  bool parse_value(const ArgSpec& arg, const Token& at, DefaultValue& value) {
    switch (arg.type) {
      case ArgType::integer: value.tag = ArgTag::integer; return parse_signed(value.i64);
      case ArgType::floating: value.tag = ArgTag::floating; return parse_float(value.f64);
      case ArgType::boolean: value.tag = ArgTag::logical; return parse_bool(value.i64);
      case ArgType::enumeration:
        value.tag = ArgTag::enumeration;
        return parse_enum_default(arg, value.i64);
      case ArgType::string: value.tag = ArgTag::string; return parse_string(value.text);
      case ArgType::int_list: value.tag = ArgTag::integer_list; return parse_list(value.list);
      case ArgType::tensor:
      case ArgType::tensor_list: break;
    }
    return tokens_.fail(
        at, "schema.default",
        concat("'", arg.name, "' is a tensor and cannot ", "have a default; write 'Tensor?'"));
  }

  bool fail_default(std::string_view wanted) {
    const Token& at = tokens_.peek();
    return tokens_.fail(at, "schema.default",
                        concat("expected ", wanted, " as default, found ", at.shown()));
  }

  bool parse_signed(int64_t& number) {
    const bool negative = tokens_.accept("-");
    if (tokens_.peek().kind != TokenKind::integer) return fail_default("an integer");
    return parse_integer(tokens_, number, negative);
  }

  bool parse_float(double& number) {
    const bool negative = tokens_.accept("-");
    const Token token = tokens_.peek();
    if (token.kind != TokenKind::integer && token.kind != TokenKind::real) {
      return fail_default("a number");
    }
    tokens_.take();
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
    if (error != std::errc() || !std::isfinite(number)) {
      return tokens_.fail(token, "schema.limit", concat(token.shown(), " does not fit in a float"));
    }
    if (negative) number = -number;
    return true;
  }

  bool parse_bool(int64_t& number) {
    if (!tokens_.at("true") && !tokens_.at("false")) return fail_default("true or false");
    number = tokens_.take().is("true") ? 1 : 0;
    return true;
  }

  bool parse_enum_default(const ArgSpec& arg, int64_t& position) {
    const Token word = tokens_.peek();
    const auto found = std::find(arg.words.begin(), arg.words.end(), word.text);
    if (word.kind != TokenKind::word || found == arg.words.end()) {
      return tokens_.fail(
          word, "schema.enum_word",
          concat("expected one of ", base::join(arg.words, ", "), " as default, found ",
                 word.shown(), base::suggestion(word.text, arg.words)));
    }
    tokens_.take();
    position = found - arg.words.begin();
    return true;
  }

  bool parse_string(std::string& text) {
    const Token token = tokens_.peek();
    if (token.kind != TokenKind::string) return fail_default("a string in double quotes");
    tokens_.take();
    if (unquote(token.text, text)) return true;
    return tokens_.fail(token, "schema.syntax",
                        "a backslash is allowed only before '\"', '\\', 'n' or 't'");
  }

  bool parse_list(std::vector<int64_t>& list) {
    if (!tokens_.at("[")) return fail_default("a list of integers such as [1, 2]");
    tokens_.take();
    if (tokens_.accept("]")) return true;
    do {
      if (list.size() == kMaxListDefault) {
        return tokens_.fail(tokens_.peek(), "schema.limit",
                            concat("a default has at most ", kMaxListDefault, " numbers"));
      }
      if (!parse_signed(list.emplace_back())) return false;
    } while (tokens_.accept(","));
    return tokens_.expect("]", "after the numbers of a list");
  }

  TokenStream& tokens_;
};

constexpr size_t kMaxWords = 64;

struct TypeWord {
  std::string_view word;
  ArgType type;
};
constexpr std::array kTypes{
    TypeWord{"Tensor", ArgType::tensor},    TypeWord{"int", ArgType::integer},
    TypeWord{"float", ArgType::floating},   TypeWord{"bool", ArgType::boolean},
    TypeWord{"enum", ArgType::enumeration}, TypeWord{"str", ArgType::string},
};
constexpr std::array<std::string_view, 10> kTypePlaceWords{
    "Tensor", "int", "float", "bool", "enum", "str", "in", "out", "inout", "const"};

/// Recursive-descent parser of one schema. Each function parses one construct and returns false
/// after an error.
class SchemaParser {
 public:
  explicit SchemaParser(TokenStream tokens) : tokens_(std::move(tokens)) {}

  Result<Schema> run() {
    const bool parsed =
        parse_operator_name() && parse_arguments() && resolve_aliases() && parse_where_clause();
    if (!parsed) return tokens_.error();
    return std::move(schema_);
  }

 private:
  bool parse_operator_name() {
    if (tokens_.peek().kind != TokenKind::word) return tokens_.fail_expected("an operator's name");
    const Token first = tokens_.take();
    if (!check_lower_name(first)) return false;
    schema_.name = first.text;
    if (!tokens_.accept(".")) return true;
    const Token second = tokens_.peek();
    if (second.kind != TokenKind::word) return tokens_.fail_expected("a name after '.'");
    tokens_.take();
    schema_.name += concat('.', second.text);
    return check_lower_name(second);
  }

  bool parse_arguments() {
    if (!tokens_.expect("(", "after the operator's name")) return false;
    if (tokens_.accept(")")) return true;
    do {
      if (schema_.args.size() == OPMUX_MAX_ARGS) {
        return tokens_.fail(tokens_.peek(), "schema.limit",
                            concat("an operator has at most ", OPMUX_MAX_ARGS, " arguments"));
      }
      if (!parse_argument()) return false;
    } while (tokens_.accept(","));
    return tokens_.accept(")") || tokens_.fail_expected("',' or ')' after an argument");
  }

  bool parse_argument() {
    ArgSpec arg;
    const Token start = tokens_.peek();
    if (!parse_access(arg) || !parse_type(arg)) return false;
    const Token name = tokens_.peek();
    if (!parse_argument_name(arg) || !parse_shape(arg) || !DefaultParser(tokens_).run(arg))
      return false;
    if (!check_access(arg, start) || !check_order(arg, start, name)) return false;
    schema_.args.push_back(std::move(arg));
    return true;
  }

  bool parse_access(ArgSpec& arg) {
    if (tokens_.accept("out")) {
      arg.access = Access::out;
      if (tokens_.accept("(")) {
        aliases_.push_back({schema_.args.size(), tokens_.peek()});
        if (tokens_.take().kind != TokenKind::word) {
          return tokens_.fail(aliases_.back().target, "schema.syntax",
                              concat("expected the argument that may share the same memory, found ",
                                     aliases_.back().target.shown()));
        }
        if (!tokens_.expect(")", "after the argument that may share the same memory")) return false;
      }
    } else if (tokens_.accept("inout")) {
      arg.access = Access::inout;
    } else {
      tokens_.accept("in");
    }
    arg.constant = tokens_.accept("const");
    return true;
  }

  bool parse_type(ArgSpec& arg) {
    const Token word = tokens_.peek();
    if (word.kind != TokenKind::word) return tokens_.fail_expected("a type");
    const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                     [&](const TypeWord& t) { return t.word == word.text; });
    if (found == kTypes.end()) {
      return tokens_.fail(word, "schema.unknown_type",
                          concat("expected a type, found ", word.shown(),
                                 base::suggestion(word.text, kTypePlaceWords)));
    }
    tokens_.take();
    arg.type = found->type;
    if (arg.type == ArgType::enumeration && !parse_enum_words(arg)) return false;
    if (arg.type == ArgType::tensor && !parse_dtype_variable(arg)) return false;
    const bool listable = arg.type == ArgType::tensor || arg.type == ArgType::integer;
    if (listable && tokens_.accept("[")) {
      if (!tokens_.expect("]", "after '[' of a list type")) return false;
      arg.type = arg.type == ArgType::tensor ? ArgType::tensor_list : ArgType::int_list;
    }
    arg.optional = tokens_.accept("?");
    return true;
  }

  bool parse_enum_words(ArgSpec& arg) {
    if (!tokens_.expect("{", "after 'enum'")) return false;
    do {
      const Token word = tokens_.peek();
      if (word.kind != TokenKind::word) return tokens_.fail_expected("a word of the enum");
      if (!check_lower_name(tokens_.take())) return false;
      if (std::find(arg.words.begin(), arg.words.end(), word.text) != arg.words.end()) {
        return tokens_.fail(word, "schema.duplicate_name",
                            concat("the enum has the word ", word.shown(), " twice"));
      }
      if (arg.words.size() == kMaxWords) {
        return tokens_.fail(word, "schema.limit",
                            concat("an enum has at most ", kMaxWords, " words"));
      }
      arg.words.emplace_back(word.text);
    } while (tokens_.accept(","));
    return tokens_.expect("}", "after the words of an enum");
  }

  bool parse_dtype_variable(ArgSpec& arg) {
    if (!tokens_.accept("(")) return true;
    const Token word = tokens_.peek();
    if (word.kind != TokenKind::word) return tokens_.fail_expected("a dtype variable");
    if (!check_upper_name(tokens_.take(), "a dtype variable")) return false;
    arg.dtype_variable = intern(schema_.dtype_variables, word.text);
    return tokens_.expect(")", "after a dtype variable");
  }

  bool parse_argument_name(ArgSpec& arg) {
    const Token word = tokens_.peek();
    if (word.kind != TokenKind::word) return tokens_.fail_expected("a name for the argument");
    if (!check_lower_name(tokens_.take())) return false;
    if (is_schema_keyword(word.text)) {
      return tokens_.fail(word, "schema.name",
                          concat("no argument may be called ", word.shown(), ": it is a keyword"));
    }
    if (schema_.arg_index(word.text) >= 0) {
      return tokens_.fail(word, "schema.duplicate_name",
                          concat("two arguments are called ", word.shown()));
    }
    arg.name = word.text;
    return true;
  }

  bool parse_shape(ArgSpec& arg) {
    const Token open = tokens_.peek();
    arg.any_shape = arg.is_tensor();
    if (!tokens_.accept("[")) return true;
    if (!arg.is_tensor()) {
      return tokens_.fail(open, "schema.shape",
                          concat("'", arg.name, "' has a shape but is not ", "a single tensor"));
    }
    if (tokens_.accept("*")) return tokens_.expect("]", "after '*', which must be the only entry");
    arg.any_shape = false;
    if (tokens_.accept("]")) return true;
    do {
      if (!parse_dim(arg)) return false;
    } while (tokens_.accept(","));
    return tokens_.accept("]") || tokens_.fail_expected("',' or ']' after a dimension");
  }

  bool parse_dim(ArgSpec& arg) {
    const Token token = tokens_.peek();
    if (arg.dims.size() == OPMUX_MAX_RANK) {
      return tokens_.fail(token, "schema.limit",
                          concat("a tensor has at most ", OPMUX_MAX_RANK, " dimensions"));
    }
    if (token.is("...")) return parse_leading(arg);
    if (token.kind == TokenKind::integer) {
      return parse_integer(tokens_, arg.dims.emplace_back().constant);
    }
    if (token.kind != TokenKind::word) {
      return tokens_.fail_expected("a dimension (a name, a number, '...' or '*')");
    }
    if (!check_upper_name(tokens_.take(), "a dimension")) return false;
    arg.dims.push_back({intern(schema_.dims, token.text), 0});
    if (schema_.dims.size() <= kMaxDims) return true;
    return tokens_.fail(token, "schema.limit",
                        concat("a schema has at most ", kMaxDims, " named dimensions"));
  }

  bool parse_leading(ArgSpec& arg) {
    if (arg.leading || !arg.dims.empty()) {
      return tokens_.fail(tokens_.peek(), "schema.shape",
                          "'...' may occur only once, at the start of a shape");
    }
    tokens_.take();
    arg.leading = true;
    return true;
  }

  bool check_access(const ArgSpec& arg, const Token& start) {
    const bool tensors = arg.type == ArgType::tensor || arg.type == ArgType::tensor_list;
    if (arg.written() && !tensors) {
      return tokens_.fail(start, "schema.access",
                          concat("'", arg.name, "' is written but is not a tensor"));
    }
    if (arg.constant && (arg.written() || !arg.is_tensor())) {
      return tokens_.fail(start, "schema.access",
                          concat("'", arg.name, "' is const but is not a tensor input"));
    }
    return true;
  }

  bool check_order(const ArgSpec& arg, const Token& start, const Token& name) {
    for (const ArgSpec& earlier : schema_.args) {
      if (arg.written() && !earlier.written()) {
        return tokens_.fail(start, "schema.argument_order",
                            concat("outputs must come first: '", arg.name, "' follows the input '",
                                   earlier.name, "'"));
      }
      if (earlier.default_value && !arg.omittable()) {
        return tokens_.fail(name, "schema.argument_order",
                            concat("'", arg.name, "' needs a default because '", earlier.name,
                                   "' before it has one"));
      }
    }
    return true;
  }

  bool resolve_aliases() {
    for (const Alias& alias : aliases_) {
      ArgSpec& output = schema_.args[alias.arg];
      const int target = schema_.arg_index(alias.target.text);
      if (target < 0) return fail_unknown_alias(alias.target);
      const ArgSpec& input = schema_.args[target];
      if (!output.is_tensor() || !input.is_tensor() || input.access != Access::in) {
        return tokens_.fail(alias.target, "schema.access",
                            concat("'", output.name, "' can share memory only with a tensor ",
                                   "input, not with '", input.name, "'"));
      }
      output.alias_of = target;
    }
    return true;
  }

  bool fail_unknown_alias(const Token& target) {
    std::vector<std::string_view> names;
    for (const ArgSpec& arg : schema_.args) names.push_back(arg.name);
    return tokens_.fail(
        target, "schema.unknown_name",
        concat("no argument is called ", target.shown(), base::suggestion(target.text, names)));
  }

  bool parse_where_clause() {
    if (tokens_.accept("where")) return parse_where(tokens_, schema_);
    return tokens_.peek().kind == TokenKind::end || tokens_.fail_expected("'where' or the end");
  }

  bool check_lower_name(const Token& word) {
    if (valid_name(word.text)) return true;
    return tokens_.fail(word, "schema.name",
                        concat("expected a name of at most ", kMaxNameBytes,
                               " lower-case letters, digits and '_', found ", word.shown()));
  }

  bool check_upper_name(const Token& word, std::string_view what) {
    if (is_upper_name(word.text)) return true;
    return tokens_.fail(word, "schema.name",
                        concat("expected ", what, " of at most ", kMaxNameBytes,
                               " capital letters and digits, found ", word.shown()));
  }

  static int intern(std::vector<std::string>& names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    names.emplace_back(name);
    return static_cast<int>(names.size()) - 1;
  }

  struct Alias {
    size_t arg;
    Token target;
  };

  TokenStream tokens_;
  Schema schema_;
  std::vector<Alias> aliases_;
};

}  // namespace

namespace {

/// Whether a line of the text is exactly this one.
bool has_line(std::string_view text, std::string_view wanted) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line == wanted) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

}  // namespace

Result<Schema> parse_schema(std::string_view text) {
  Result<std::vector<Token>> tokens = tokenize(text);
  if (!tokens) return tokens.error();
  Result<Schema> schema = SchemaParser(TokenStream(*std::move(tokens))).run();
  if (!schema) return schema;
  schema->opaque = has_line(text, "#! opaque");
  schema->mixed_devices = schema->opaque || has_line(text, "#! mixed_devices");
  return schema;
}

}  // namespace opmux::schema
