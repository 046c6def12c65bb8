#include "schema/schema.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace opmux::schema {
namespace {

constexpr std::array<std::string_view, 12> kKeywords{
    "in", "out", "inout", "const", "where", "true", "false", "int", "float", "bool", "enum", "str"};
constexpr std::string_view kEscaped = "\"\\\n\t";
constexpr std::string_view kEscapes = "\"\\nt";

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

bool is_upper_name(std::string_view word) {
  return !word.empty() && word.size() <= kMaxNameBytes && is_upper(word[0]) &&
         std::all_of(word.begin(), word.end(), [](char c) { return is_upper(c) || is_digit(c); });
}

bool is_schema_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const size_t escape = kEscaped.find(c);
    if (escape != std::string_view::npos) quoted += '\\';
    quoted += escape == std::string_view::npos ? c : kEscapes[escape];
  }
  return quoted += '"';
}

bool unquote(std::string_view quoted, std::string& text) {
  const std::string_view inner = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      text += inner[i];
      continue;
    }
    const size_t escape = ++i < inner.size() ? kEscapes.find(inner[i]) : std::string_view::npos;
    if (escape == std::string_view::npos) return false;
    text += kEscaped[escape];
  }
  return true;
}

namespace {

using base::concat;

std::string_view type_word(ArgType type) {
  switch (type) {
    case ArgType::tensor:
    case ArgType::tensor_list: return "Tensor";
    case ArgType::integer:
    case ArgType::int_list: return "int";
    case ArgType::floating: return "float";
    case ArgType::boolean: return "bool";
    case ArgType::enumeration: return "enum";
    case ArgType::string: return "str";
  }
  return "";
}

std::string access_text(const Schema& schema, const ArgSpec& arg) {
  if (arg.alias_of >= 0) return concat("out(", schema.args[arg.alias_of].name, ") ");
  switch (arg.access) {
    case Access::out: return "out ";
    case Access::inout: return "inout ";
    case Access::in: break;
  }
  return arg.constant ? "const " : "";
}

std::string type_text(const Schema& schema, const ArgSpec& arg) {
  std::string text(type_word(arg.type));
  if (arg.type == ArgType::enumeration) text += concat('{', base::join(arg.words, ", "), '}');
  if (arg.dtype_variable >= 0) {
    text += concat('(', schema.dtype_variables[arg.dtype_variable], ')');
  }
  if (arg.type == ArgType::tensor_list || arg.type == ArgType::int_list) text += "[]";
  if (arg.optional) text += '?';
  return text;
}

std::string shape_text(const Schema& schema, const ArgSpec& arg) {
  if (!arg.is_tensor()) return "";
  if (arg.any_shape) return "[*]";
  std::vector<std::string> parts;
  if (arg.leading) parts.emplace_back("...");
  for (const DimSpec& dim : arg.dims) {
    parts.push_back(dim.name >= 0 ? schema.dims[dim.name] : std::to_string(dim.constant));
  }
  return concat('[', base::join(parts, ", "), ']');
}

/// The operator's name and first `count` arguments, without the closing parenthesis.
std::string head_text(const Schema& schema, size_t count) {
  std::string text = schema.name + "(";
  for (size_t i = 0; i < std::min(count, schema.args.size()); ++i) {
    if (i > 0) text += ", ";
    text += schema.argument_text(i);
  }
  return text;
}

template <class Range, class Name>
int position(const Range& range, std::string_view wanted, Name name_of_element) {
  for (size_t i = 0; i < range.size(); ++i) {
    if (name_of_element(range[i]) == wanted) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

DefaultValue& DefaultValue::operator=(const DefaultValue& other) {
  tag = other.tag;
  i64 = other.i64;
  f64 = other.f64;
  text = other.text;
  list = other.list;
  point_inside();
  return *this;
}

void DefaultValue::point_inside() {
  span = tag == ArgTag::integer_list ? opmux_list{list.data(), list.size()}
                                     : opmux_list{text.data(), text.size()};
}

int Schema::arg_index(std::string_view arg) const {
  return position(args, arg, [](const ArgSpec& a) -> std::string_view { return a.name; });
}

int Schema::dim_index(std::string_view dim) const {
  return position(dims, dim, [](const std::string& d) -> std::string_view { return d; });
}

bool Schema::has_leading() const {
  return std::any_of(args.begin(), args.end(), [](const ArgSpec& arg) { return arg.leading; });
}

std::vector<std::string> Schema::size_names() const {
  std::vector<std::string> names = dims;
  if (has_leading()) names.emplace_back("rows");
  return names;
}

std::string ArgSpec::default_text() const {
  if (!default_value) return "";
  const DefaultValue& value = *default_value;
  switch (type) {
    case ArgType::integer: return std::to_string(value.i64);
    case ArgType::floating: return base::number_text(value.f64);
    case ArgType::boolean: return value.i64 != 0 ? "true" : "false";
    case ArgType::enumeration: return words[value.i64];
    case ArgType::string: return quote(value.text);
    case ArgType::int_list: return concat("[", base::join(value.list, ", "), ']');
    case ArgType::tensor:
    case ArgType::tensor_list: break;
  }
  return "";
}

std::string Schema::argument_text(size_t index) const {
  const ArgSpec& arg = args[index];
  return concat(access_text(*this, arg), type_text(*this, arg), ' ', arg.name,
                shape_text(*this, arg), arg.default_value ? " = " : "", arg.default_text());
}

std::string Schema::canonical() const {
  std::string text = head_text(*this, args.size()) + ")";
  for (size_t i = 0; i < where.size(); ++i) {
    text += i == 0 ? " where " : " && ";
    // || binds looser than the && between conjuncts, so it needs parentheses unless it is alone.
    const bool enclosed =
        where.size() > 1 && where[i].steps.back().op == WhereExpression::Op::logical_or;
    text += enclosed ? concat('(', where[i].text, ')') : where[i].text;
  }
  return text;
}

uint64_t Schema::prefix_hash(size_t count) const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : head_text(*this, count)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

namespace {

using base::concat;
using Op = WhereExpression::Op;

Status difference(const Schema& current, std::string_view what) {
  return {Code::invalid_argument, "schema.difference",
          concat("differs from the registered ", current.name, ": ", what)};
}

/// Whether a condition reads an argument or dimension beyond the first `args` and `dims`.
bool is_about_added(const WhereExpression& condition, size_t args, size_t dims) {
  return std::any_of(condition.steps.begin(), condition.steps.end(), [&](const auto& step) {
    const auto index = static_cast<size_t>(step.index);
    return (step.op == Op::scalar && index >= args) || (step.op == Op::dim && index >= dims);
  });
}

std::vector<std::string> conditions(const Schema& schema, size_t args, size_t dims) {
  std::vector<std::string> texts;
  for (const WhereExpression& condition : schema.where) {
    if (!is_about_added(condition, args, dims)) texts.push_back(condition.text);
  }
  return texts;
}

std::string shown_conditions(const std::vector<std::string>& texts) {
  return texts.empty() ? "no where clause" : concat("where ", base::join(texts, " && "));
}

}  // namespace

Status check_evolution(const Schema& older, const Schema& current) {
  if (older.name != current.name) {
    return difference(current, concat("it is called ", older.name));
  }
  const size_t common = std::min(older.args.size(), current.args.size());
  for (size_t i = 0; i < common; ++i) {
    const std::string was = older.argument_text(i), is = current.argument_text(i);
    if (was == is) continue;
    return difference(current,
                      concat("argument ", i + 1, " is '", was, "', registered as '", is, "'"));
  }
  if (older.args.size() > common) {
    return difference(current, concat("argument ", common + 1, " is '", older.argument_text(common),
                                      "', the registered number of arguments is ", common));
  }
  for (size_t i = common; i < current.args.size(); ++i) {
    if (current.args[i].omittable()) continue;
    return difference(current, concat("argument ", i + 1, " '", current.argument_text(i),
                                      "' is missing and has no default"));
  }
  const auto was = conditions(older, common, older.dims.size());
  const auto is = conditions(current, common, older.dims.size());
  if (was == is) return {};
  return difference(current, concat("it has ", shown_conditions(was), ", the registered one has ",
                                    shown_conditions(is)));
}

namespace {

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool inside_a_name(char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && lower(name.front()) &&
         std::all_of(name.begin(), name.end(), inside_a_name);
}

bool valid_operator_name(std::string_view name) {
  return valid_dotted_name(name) && std::count(name.begin(), name.end(), '.') <= 1;
}

bool valid_dotted_name(std::string_view name) {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    if (!valid_name(name.substr(0, dot))) return false;
    name.remove_prefix(dot + 1);
  }
  return valid_name(name);
}

}  // namespace opmux::schema
