#include <algorithm>
#include <array>
#include <bit>

#include "base/system/cpu_features.hpp"
#include "base/tag_table.hpp"
#include "base/text.hpp"
#include "policy/conditions/expression_compiler.hpp"
#include "policy/rules/token.hpp"
#include "schema/dtype.hpp"

namespace opmux::policy {

using schema::ArgType;
using schema::FactKind;

namespace {

constexpr std::array<std::string_view, 9> kFunctions{
    "dtype", "device", "layout", "rank", "contiguous", "aligned", "has", "glob", "cpu"};
constexpr int64_t kWidestAlign = 4096;
constexpr int64_t kDeviceTypes = 0x10000;  ///< the bits above the type hold the device number

std::string_view kind_word(ArgType type) {
  switch (type) {
    case ArgType::tensor: return "a tensor";
    case ArgType::tensor_list: return "a list of tensors";
    case ArgType::string: return "a string";
    case ArgType::int_list: return "a list of numbers";
    default: return "a value";
  }
}

}  // namespace

bool ExpressionCompiler::push_fact(const ExprNode& node, FactKind kind, std::string_view name) {
  const auto fact = schema::resolve_fact(schema_, kind, name);
  if (!fact) return unknown_name(node, true).has_value();
  const auto found = std::find(formula_.facts.begin(), formula_.facts.end(), *fact);
  const auto index = static_cast<size_t>(found - formula_.facts.begin());
  if (found == formula_.facts.end()) {
    if (index == schema::Formula::kMostFacts) {
      return fail(node.at,
                  "a comparison has too many names; split it and combine the parts with && and ||")
          .has_value();
    }
    formula_.facts.push_back(*fact);
  }
  push({Code::scalar, static_cast<int>(index), 0});
  if (kind == FactKind::device) {
    push_constant(kDeviceTypes);
    push({Code::modulo});
  }
  return true;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_name(const ExprNode& node) {
  const std::string& name = node.text;
  if (name == "tag") {
    if (!push_fact(node, FactKind::tag, name)) return std::nullopt;
    return Type{Domain::tag};
  }
  if (schema::means_ambient(schema_, name)) {
    if (!push_fact(node, FactKind::ambient, name)) return std::nullopt;
    const bool number = schema::is_rank(*resolve_fact(schema_, FactKind::ambient, name));
    return Type{number ? Domain::integer : Domain::boolean};
  }
  if (name == "rows" && !schema_.has_leading()) {
    return fail(
        node.at,
        base::concat("operator ", schema_.name, " has no leading dimensions, so it has no rows"),
        true);
  }
  if (schema::resolve_fact(schema_, FactKind::dim, name)) {
    if (!push_fact(node, FactKind::dim, name)) return std::nullopt;
    return Type{};
  }
  const int arg = schema_.arg_index(name);
  return arg < 0 ? unknown_name(node, false) : emit_argument(node, arg);
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_argument(const ExprNode& node,
                                                                          int arg) {
  Type type;
  switch (schema_.args[static_cast<size_t>(arg)].type) {
    case ArgType::integer: break;
    case ArgType::floating: type = {Domain::floating}; break;
    case ArgType::boolean: type = {Domain::boolean}; break;
    case ArgType::enumeration: type = {Domain::enumeration, arg}; break;
    case ArgType::tensor:
      return fail(node.at, base::concat("'", node.text, "' is a tensor; use dtype(", node.text,
                                        "), rank(", node.text, "), device(", node.text,
                                        ") or a similar function, or the name of a dimension"));
    default:
      return fail(node.at, base::concat("'", node.text, "' is ",
                                        kind_word(schema_.args[static_cast<size_t>(arg)].type),
                                        ", which conditions cannot read"));
  }
  if (!push_fact(node, FactKind::scalar, node.text)) return std::nullopt;
  return type;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::unknown_name(const ExprNode& node,
                                                                         bool tensor) {
  std::vector<std::string_view> names;
  for (const schema::ArgSpec& arg : schema_.args) {
    const bool scalar = arg.type >= ArgType::integer && arg.type <= ArgType::enumeration;
    if (tensor ? arg.is_tensor() : scalar) names.push_back(arg.name);
  }
  if (!tensor) {
    names.insert(names.end(), schema_.dims.begin(), schema_.dims.end());
    names.insert(names.end(), schema::kAmbientNames.begin(), schema::kAmbientNames.end());
    names.insert(names.end(), schema::kRankNames.begin(), schema::kRankNames.end());
    names.emplace_back("tag");
    if (schema_.has_leading()) names.emplace_back("rows");
  }
  const std::string near = base::suggestion(node.text, std::span<const std::string_view>(names));
  const std::string all = base::concat("; valid names are ", base::join(names, ", "));
  return fail(node.at,
              base::concat("operator ", schema_.name, " has no ",
                           tensor ? "tensor '" : "dimension or argument '", node.text, "'",
                           near.empty() ? all : near),
              true);
}

/// The name in the first argument of a call with `count` arguments; null after an error.
const Expression::Node* ExpressionCompiler::argument_name(const ExprNode& call, size_t count) {
  if (call.operands.size() != count) {
    fail(call.at, base::concat(call.text, " takes ", count, count == 1 ? " argument" : " arguments",
                               ", found ", call.operands.size()));
    return nullptr;
  }
  const ExprNode& first = expression_[call.operands[0]];
  if (first.op == Expression::Op::name) return &first;
  fail(first.at, base::concat(call.text, " takes the name of an operator's argument, as in ",
                              call.text, "(x)"));
  return nullptr;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_call(const ExprNode& node) {
  const std::string& name = node.text;
  if (name == "dtype") return emit_tensor_fact(node, FactKind::dtype, {Domain::dtype});
  if (name == "device") return emit_tensor_fact(node, FactKind::device, {Domain::device});
  if (name == "layout") return emit_tensor_fact(node, FactKind::layout, {Domain::layout});
  if (name == "rank") return emit_tensor_fact(node, FactKind::rank, {});
  if (name == "contiguous") {
    return emit_tensor_fact(node, FactKind::contiguous, {Domain::boolean});
  }
  if (name == "has") return emit_tensor_fact(node, FactKind::present, {Domain::boolean});
  if (name == "aligned") return emit_aligned(node);
  if (name == "glob") return emit_glob(node);
  if (name == "cpu") return emit_cpu(node);
  const std::string near = base::suggestion(name, kFunctions);
  return fail(
      node.at,
      base::concat("there is no function '", name, "' in conditions",
                   near.empty() ? "; valid functions are " + base::join(kFunctions, ", ") : near));
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_tensor_fact(const ExprNode& node,
                                                                             FactKind kind,
                                                                             Type type) {
  const ExprNode* const arg = argument_name(node, 1);
  if (arg == nullptr || !push_fact(*arg, kind, arg->text)) return std::nullopt;
  return type;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_aligned(const ExprNode& node) {
  const ExprNode* const arg = argument_name(node, 2);
  if (arg == nullptr) return std::nullopt;
  const ExprNode& bytes = expression_[node.operands[1]];
  const bool power = bytes.op == Expression::Op::integer && bytes.number > 0 &&
                     bytes.number <= kWidestAlign &&
                     std::has_single_bit(static_cast<uint64_t>(bytes.number));
  if (!power) return fail(bytes.at, "an alignment is a power of two from 1 to 4096");
  if (!push_fact(*arg, FactKind::alignment, arg->text)) return std::nullopt;
  push_constant(bytes.number);
  push({Code::greater_equal});
  return Type{Domain::boolean};
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_cpu(const ExprNode& node) {
  if (node.operands.size() != 1 || !is_text(node.operands[0])) {
    return fail(node.at, "cpu takes the name of a feature as a string: cpu(\"avx2\")");
  }
  const ExprNode& feature = expression_[node.operands[0]];
  const bool here = cpu_.contains(feature.text);
  if (!here && !known_cpu_features().contains(feature.text) &&
      !base::cpu_features().contains(feature.text)) {
    std::vector<std::string> names(known_cpu_features().begin(), known_cpu_features().end());
    names.insert(names.end(), cpu_.begin(), cpu_.end());
    return fail(feature.at,
                base::concat("unknown CPU feature '", feature.text, "'",
                             base::suggestion(feature.text, std::span<const std::string>(names)),
                             " (names are those in /proc/cpuinfo)"));
  }
  push_constant(here ? 1 : 0);
  return Type{Domain::boolean};
}

std::optional<std::string> ExpressionCompiler::tag_pattern(uint32_t index) {
  const ExprNode& node = expression_[index];
  if (node.op != Expression::Op::call || node.text != "glob" || node.operands.size() != 2) {
    return std::nullopt;
  }
  const ExprNode& subject = expression_[node.operands[0]];
  if (subject.op != Expression::Op::name || subject.text != "tag" || !is_text(node.operands[1])) {
    return std::nullopt;
  }
  return expression_[node.operands[1]].text;
}

std::optional<ExpressionCompiler::Type> ExpressionCompiler::emit_glob(const ExprNode& node) {
  if (node.operands.size() != 2 || !is_text(node.operands[1])) {
    return fail(node.at, "glob takes a word and a pattern: glob(dtype(x), \"f*\")");
  }
  const size_t before = formula_.steps.size();
  const auto type = emit(node.operands[0]);
  if (!type) return type;
  if (type->domain == Domain::tag) {
    return fail(node.at, "glob(tag, ...) can be combined only with &&, || and !");
  }
  if (type->domain <= Domain::boolean || type->domain == Domain::layout) {
    return fail(node.at, base::concat("glob matches a word with a pattern, found ", shown(*type)));
  }
  const std::vector<Step> subject(formula_.steps.begin() + static_cast<int64_t>(before),
                                  formula_.steps.end());
  formula_.steps.resize(before);
  push_constant(0);
  for (const auto& [word, number] : words_of(*type)) {
    if (!glob_match(expression_[node.operands[1]].text, word)) continue;
    formula_.steps.insert(formula_.steps.end(), subject.begin(), subject.end());
    push_constant(number);
    push({Code::equal});
    push({Code::logical_or});
  }
  return Type{Domain::boolean};
}

std::vector<std::pair<std::string, int64_t>> ExpressionCompiler::words_of(Type type) const {
  std::vector<std::pair<std::string, int64_t>> all;
  if (type.domain == Domain::dtype) {
    for (const auto& [name, number] : schema::named_dtypes()) all.emplace_back(name, number);
  } else if (type.domain == Domain::device) {
    for (const auto& [name, number] : schema::named_devices()) all.emplace_back(name, number);
  } else if (type.domain == Domain::enumeration) {
    const auto& words = schema_.args[static_cast<size_t>(type.arg)].words;
    for (size_t i = 0; i < words.size(); ++i) all.emplace_back(words[i], i);
  }
  return all;
}

bool ExpressionCompiler::emit_word(const ExprNode& literal, Type type) {
  if (type.domain == Domain::tag) {
    push_constant(base::tag_number(literal.text));
    return true;
  }
  if (type.domain == Domain::layout) {
    const auto order = schema::parse_layout(literal.text);
    if (order) return push_constant(*order), true;
    return fail(literal.at,
                base::concat("'", literal.text,
                             "' is not an order of dimensions by descending stride, such as "
                             "\"0213\""))
        .has_value();
  }
  std::vector<std::string> names;
  for (const auto& [word, number] : words_of(type)) {
    if (word == literal.text) return push_constant(number), true;
    names.push_back(word);
  }
  if (names.empty()) {
    return fail(literal.at, base::concat(shown(type), " cannot be compared with the string \"",
                                         literal.text, "\""))
        .has_value();
  }
  const std::string near = base::suggestion(literal.text, std::span<const std::string>(names));
  return fail(literal.at,
              base::concat(shown(type), " cannot be \"", literal.text, "\"",
                           near.empty() ? "; valid values are " + base::join(names, ", ") : near))
      .has_value();
}

std::string ExpressionCompiler::shown(Type type) const {
  switch (type.domain) {
    case Domain::integer: return "a number";
    case Domain::floating: return "a float";
    case Domain::boolean: return "a boolean";
    case Domain::dtype: return "a dtype";
    case Domain::device: return "a device";
    case Domain::layout: return "a layout";
    case Domain::enumeration:
      return base::concat("the argument '", schema_.args[static_cast<size_t>(type.arg)].name, "'");
    case Domain::tag: return "the tag";
  }
  return {};
}

const CpuFeatures& known_cpu_features() {
  static const CpuFeatures features{
      "sse",         "sse2",        "pni",        "ssse3",        "sse4_1",      "sse4_2",
      "popcnt",      "aes",         "avx",        "f16c",         "fma",         "avx2",
      "bmi1",        "bmi2",        "avx512f",    "avx512dq",     "avx512cd",    "avx512bw",
      "avx512vl",    "avx512ifma",  "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg",
      "avx512_bf16", "avx512_fp16", "avx_vnni",   "amx_tile",     "amx_int8",    "amx_bf16",
      "amx_fp16",    "vaes",        "vpclmulqdq", "gfni",         "sha_ni",      "neon",
      "asimd",       "asimddp",     "asimdhp",    "fphp",         "sve",         "sve2",
      "i8mm",        "bf16",        "svei8mm",    "svebf16",      "sme",         "sme2"};
  return features;
}

}  // namespace opmux::policy
