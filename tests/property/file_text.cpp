#include "file_text.hpp"

#include <cctype>
#include <sstream>

#include "question.hpp"

namespace opmux::property {
namespace {

using FileKind = Condition::Kind;

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text)
    all += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return all + "\"";
}

std::string cel_sign(Compare compare) {
  switch (compare) {
    case Compare::equal: return "==";
    case Compare::not_equal: return "!=";
    case Compare::less: return "<";
    case Compare::less_equal: return "<=";
    case Compare::greater: return ">";
    case Compare::greater_equal: return ">=";
    case Compare::multiple_of: return "%";
  }
  return "?";
}

std::string cel_number(const std::string& left, const Condition::Node& node) {
  const std::string text = left + " " + cel_sign(node.compare) + " " + std::to_string(node.value);
  return node.compare == Compare::multiple_of ? text + " == 0" : text;
}

std::optional<std::string> scalar_text(const Condition::Node& node, const Schema& schema) {
  const Arg* arg = find(schema, node.name);
  const bool equality = node.compare == Compare::equal || node.compare == Compare::not_equal;
  const bool real = arg != nullptr && arg->type == Arg::Type::floating;
  if (real && node.compare == Compare::multiple_of) return {};
  if (arg == nullptr || real || arg->type == Arg::Type::integer) {
    return cel_number(node.name, node);
  }
  const auto value = static_cast<size_t>(node.value);
  std::string word;
  if (arg->type == Arg::Type::boolean && value < 2) word = value == 1 ? "true" : "false";
  if (arg->type == Arg::Type::enumeration && value < arg->words.size())
    word = quoted(arg->words[value]);
  if (!equality || word.empty()) return {};
  return node.name + " " + cel_sign(node.compare) + " " + word;
}

std::optional<std::string> real_text(const Condition& condition, const Schema& schema) {
  const Arg* arg = find(schema, condition.node().name);
  const bool number =
      arg == nullptr || arg->type == Arg::Type::integer || arg->type == Arg::Type::floating;
  return number ? std::optional(condition.to_string()) : std::nullopt;
}

std::optional<std::string> joined_text(const Condition::Node& node, const Schema& schema,
                                       const char* sign) {
  std::string all;
  for (const Condition& operand : node.operands) {
    const auto one = cel_text(operand, schema);
    if (!one) return {};
    all += (all.empty() ? "(" : sign) + *one;
  }
  return all + ")";
}

void put_part(std::ostream& out, const char* key, const std::vector<std::string>& tokens) {
  if (tokens.empty()) return;
  out << ", \"" << key << "\": [";
  for (const std::string& token : tokens)
    out << (&token == &tokens[0] ? "" : ", ") << quoted(token);
  out << "]";
}

void put_part(std::ostream& out, const Rule& rule, const Schema& schema) {
  out << "{\"op\": " << quoted(rule.op) << ", \"rank\": " << rule.rank;
  if (rule.when) out << ", \"when\": " << quoted(*cel_text(*rule.when, schema));
  put_part(out, "require", rule.require);
  put_part(out, "prefer", rule.prefer);
  put_part(out, "order", rule.order);
  put_part(out, "deny", rule.deny);
  put_part(out, "allow", rule.allow);
  if (!rule.boost.empty()) out << ", \"boost\": [";
  for (const Boost& boost : rule.boost) {
    out << (&boost == &rule.boost[0] ? "" : ", ") << "{\"impl\": " << quoted(boost.impl)
        << ", \"add\": " << boost.add << ", \"multiply\": " << boost.multiply << "}";
  }
  if (!rule.boost.empty()) out << "]";
  if (rule.strict) out << ", \"strict\": " << (*rule.strict ? "true" : "false");
  out << ", \"allow_none\": " << (rule.allow_none ? "true" : "false") << "}";
}

}  // namespace

std::optional<std::string> cel_text(const Condition& condition, const Schema& schema) {
  const Condition::Node& node = condition.node();
  const auto call = [&](const char* name) { return std::string(name) + "(" + node.name + ")"; };
  switch (node.kind) {
    case FileKind::dim: return cel_number(node.name, node);
    case FileKind::rows: return cel_number("rows", node);
    case FileKind::rank: return cel_number(call("rank"), node);
    case FileKind::scalar: return scalar_text(node, schema);
    case FileKind::real: return real_text(condition, schema);
    case FileKind::present: return call("has");
    case FileKind::contiguous: return call("contiguous");
    case FileKind::aligned: return "aligned(" + node.name + ", " + std::to_string(node.value) + ")";
    case FileKind::layout: return call("layout") + " == " + quoted(node.text);
    case FileKind::ambient: return node.name;
    case FileKind::all_of: return joined_text(node, schema, " && ");
    case FileKind::any_of: return joined_text(node, schema, " || ");
    case FileKind::dtype: {
      const std::string name = name_of(DType::from_packed(static_cast<uint32_t>(node.value)));
      // Types without a name cannot be written in a condition.
      if (std::isdigit(static_cast<unsigned char>(name.front())) != 0) return {};
      return call("dtype") + " == " + quoted(name);
    }
    case FileKind::device:
      return call("device") + " == " + (node.value == 1 ? "\"cpu\"" : "\"cuda\"");
    case FileKind::negation: {
      const auto inner = cel_text(node.operands[0], schema);
      return inner ? "!(" + *inner + ")" : std::optional<std::string>();
    }
    case FileKind::text: return node.text;
    case FileKind::tag: return {};
  }
  return {};
}

Policy file_part(const Policy& policy, const Schema& schema) {
  Policy part;
  part.prefer = policy.prefer;
  part.allow = policy.allow;
  part.strict = policy.strict;
  for (const Rule& rule : policy.rules) {
    if (!rule.when || cel_text(*rule.when, schema)) part.rules.push_back(rule);
  }
  return part;
}

std::string file_text(const Policy& policy, const Schema& schema, bool json) {
  std::ostringstream out;
  out.precision(17);
  // A missing key and an empty list mean the same; the empty list lets commas follow.
  const auto defaults = [&] {
    std::ostringstream all;
    put_part(all, "prefer", policy.prefer);
    put_part(all, "allow", policy.allow);
    if (policy.strict) all << ", \"strict\": " << (*policy.strict ? "true" : "false");
    return all.str().empty() ? all.str() : all.str().substr(2);
  };
  out << (json ? "{\"opmux\": 1, \"defaults\": {" : "opmux: 1\ndefaults: {") << defaults();
  out << (json ? "}, \"rules\": [" : "}\nrules: [");
  for (const Rule& rule : policy.rules) {
    out << (&rule == &policy.rules[0] ? "" : ",\n  ");
    put_part(out, rule, schema);
  }
  out << (json ? "]}" : "]\n");
  return out.str();
}

}  // namespace opmux::property
