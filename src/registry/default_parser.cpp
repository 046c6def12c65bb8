#include "registry/default_parser.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "registry/schema_names.hpp"

namespace opmux::registry {
namespace {

using base::concat;

constexpr size_t kMaxListDefault = 64;

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

}  // namespace

bool parse_default(TokenStream& tokens, ArgSpec& arg) { return DefaultParser(tokens).run(arg); }

bool parse_integer(TokenStream& tokens, int64_t& number, bool negative) {
  const Token token = tokens.take();
  const std::string text = concat(negative ? "-" : "", token.text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc()) return true;
  return tokens.fail(token, "schema.limit", concat(token.shown(), " does not fit in 64 bits"));
}

}  // namespace opmux::registry
