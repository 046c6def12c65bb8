#include "policy/conditions/class_facts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/tag_table.hpp"
#include "base/text.hpp"

namespace opmux::policy {
namespace {

using FactIs = ClassFact::Is;
using schema::Predicate;
using schema::Relation;

bool holds_of(const ClassFact& known, int64_t value) {
  if (value == schema::kAbsent || known.is == FactIs::absent) {
    return known.is == FactIs::absent && value == schema::kAbsent;
  }
  switch (known.is) {
    case FactIs::equal: return value == known.value;
    case FactIs::not_equal: return value != known.value;
    case FactIs::at_least: return value >= known.value;
    case FactIs::below: return value < known.value;
    case FactIs::multiple: return value % known.value == 0;
    case FactIs::not_multiple: return value % known.value != 0;
    default: return false;
  }
}

Relation relation_of(FactIs is) {
  switch (is) {
    case FactIs::at_least:
    case FactIs::below:
    case FactIs::absent:
      return Relation::at_least;  // every predicate on the fact also tests its presence
    case FactIs::multiple:
    case FactIs::not_multiple: return Relation::multiple_of;
    default: return Relation::equals;
  }
}

}  // namespace

bool holds(const ClassFact& known, const schema::Signature& signature) {
  if (known.is != FactIs::answered) return holds_of(known, schema::value_of(signature, known.fact));
  const schema::Answer answer = known.formula->answer(schema::FactsOf{signature});
  return static_cast<int64_t>(answer) == known.value;
}

void add_dependencies(const ClassFact& known, schema::Dependencies& into) {
  if (known.is == FactIs::answered) return into.add(*known.formula);
  into.add(Predicate{known.fact, relation_of(known.is), known.value});
}

namespace {

using Op = schema::WhereExpression::Op;

std::string_view sign_of(Op op) {
  switch (op) {
    case Op::add: return "+";
    case Op::subtract: return "-";
    case Op::multiply: return "*";
    case Op::divide: return "/";
    case Op::modulo: return "%";
    case Op::equal: return "==";
    case Op::not_equal: return "!=";
    case Op::less: return "<";
    case Op::less_equal: return "<=";
    case Op::greater: return ">";
    case Op::greater_equal: return ">=";
    case Op::equal_real: return "==";
    case Op::less_real: return "<";
    case Op::less_equal_real: return "<=";
    case Op::greater_real: return ">";
    case Op::greater_equal_real: return ">=";
    case Op::logical_and: return "&&";
    case Op::logical_or: return "||";
    case Op::negate: return "-";
    case Op::logical_not: return "!";
    default: return "?";
  }
}

/// Removes and returns the last text.
std::string take_last(std::vector<std::string>& texts) {
  std::string last = std::move(texts.back());
  texts.pop_back();
  return last;
}

std::string join_last(Op op, std::vector<std::string>& texts) {
  if (op == Op::negate || op == Op::logical_not) {
    return base::concat("(", sign_of(op), take_last(texts), ")");
  }
  const std::string right = take_last(texts), left = take_last(texts);
  if (op != Op::conditional) return base::concat("(", left, sign_of(op), right, ")");
  return base::concat("(", take_last(texts), "?", left, ":", right, ")");
}

}  // namespace

std::string to_string(const schema::Schema& schema, const schema::Formula& formula) {
  std::vector<std::string> texts;
  for (const schema::WhereExpression::Step& step : formula.steps) {
    if (step.op == Op::constant) {
      texts.push_back(std::to_string(step.value));
    } else if (step.op == Op::real) {
      texts.push_back(base::number_text(std::bit_cast<double>(step.value)));
    } else if (step.op == Op::to_real) {
      continue;  // the text of an integer is that of the float
    } else if (step.op == Op::scalar) {
      texts.push_back(schema::describe(schema, formula.facts[static_cast<size_t>(step.index)]));
    } else {
      texts.push_back(join_last(step.op, texts));
    }
  }
  return texts.empty() ? std::string() : texts.back();
}

namespace {

using schema::ArgType;
using schema::Fact;
using schema::FactKind;
using schema::Formula;
using schema::Schema;
using FactIs = ClassFact::Is;

constexpr std::string_view kBetween = " && ", kAlways = "always", kAbsentWord = "absent";
constexpr std::array<std::string_view, 3> kAnswers{"false", "true", "unknown"};
constexpr int kDeviceBits = 16;  // the bits above hold the device number

struct Comparison {
  std::string_view sign;
  FactIs is;
};
constexpr std::array<Comparison, 4> kComparisons{{{"==", FactIs::equal},
                                                  {"!=", FactIs::not_equal},
                                                  {">=", FactIs::at_least},
                                                  {"<", FactIs::below}}};

ArgType type_of(const Schema& schema, Fact fact) {
  return fact.kind == FactKind::scalar ? schema.args[fact.index].type : ArgType::integer;
}

bool is_yes_or_no(const Schema& schema, Fact fact) {
  switch (fact.kind) {
    case FactKind::present:
    case FactKind::contiguous:
    case FactKind::inner_contiguous:
    case FactKind::is_default: return true;
    case FactKind::ambient: return !schema::is_rank(fact);
    default: return type_of(schema, fact) == ArgType::boolean;
  }
}

Device device_of(int64_t value) {
  return {static_cast<int32_t>(value & ((1 << kDeviceBits) - 1)),
          static_cast<int32_t>(value >> kDeviceBits)};
}

std::string layout_text(int64_t packed) {
  std::string digits;
  int last = 0;
  for (int i = 0; i < OPMUX_MAX_RANK; ++i) {
    const auto digit = static_cast<int>(packed >> (4 * i) & 15);
    digits += static_cast<char>('0' + digit);
    last = std::max(last, digit);
  }
  return digits.substr(0, static_cast<size_t>(last) + 1);
}

/// Quotes a word, which may contain any byte; special characters are written as %41.
std::string escaped(std::string_view word) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : word) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '/' || c == ':';
    if (plain) {
      text += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    text += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return text + '"';
}

template <class T>
std::optional<T> number_of(std::string_view text, int base = 10) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<T>) {
    read = std::from_chars(begin, end, value, base);
  } else {
    read = std::from_chars(begin, end, value);
  }
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

std::optional<std::string> unescaped(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      word += text[i];
      continue;
    }
    const auto byte = number_of<uint8_t>(text.substr(i + 1, 2), 16);
    if (!byte || i + 2 >= text.size()) return std::nullopt;
    word += static_cast<char>(*byte);
    i += 2;
  }
  return word;
}

}  // namespace

std::string value_text(const Schema& schema, Fact fact, int64_t value) {
  if (fact.kind == FactKind::dtype) {
    const auto packed = static_cast<uint32_t>(value);
    const std::string name = name_of(DType::from_packed(packed));
    return parse_dtype(name).packed() == packed ? name : std::to_string(value);
  }
  if (fact.kind == FactKind::device) return name_of(device_of(value));
  if (fact.kind == FactKind::layout) return layout_text(value);
  if (fact.kind == FactKind::tag) return escaped(base::tag_word(static_cast<uint32_t>(value)));
  if (is_yes_or_no(schema, fact)) return value != 0 ? "true" : "false";
  if (type_of(schema, fact) == ArgType::floating) {
    return base::number_text(std::bit_cast<double>(value));
  }
  if (type_of(schema, fact) == ArgType::enumeration) {
    const auto& words = schema.args[fact.index].words;
    if (value >= 0 && value < static_cast<int64_t>(words.size())) {
      return words[static_cast<size_t>(value)];
    }
  }
  return std::to_string(value);
}

namespace {

std::optional<int64_t> device_value(std::string_view text) {
  const std::optional<Device> device = parse_device(text);
  if (!device || text.find(':') == text.npos) return std::nullopt;
  return int64_t{device->id} << kDeviceBits | device->type;
}

std::optional<int64_t> value_of_text(const Schema& schema, Fact fact, std::string_view text) {
  if (fact.kind == FactKind::dtype) {
    if (const DType dtype = parse_dtype(text); dtype.bits != 0) return dtype.packed();
  }
  if (fact.kind == FactKind::device) return device_value(text);
  if (fact.kind == FactKind::layout) return schema::parse_layout(text);
  if (fact.kind == FactKind::tag) {
    const auto word = unescaped(text);
    if (!word) return std::nullopt;
    return word->empty() ? 0 : base::tag_number(*word);
  }
  if (is_yes_or_no(schema, fact)) {
    if (text != "true" && text != "false") return std::nullopt;
    return text == "true" ? 1 : 0;
  }
  if (type_of(schema, fact) == ArgType::floating) {
    const auto number = number_of<double>(text);
    return number ? std::optional(schema::float_fact(*number)) : std::nullopt;
  }
  if (type_of(schema, fact) == ArgType::enumeration) {
    const auto& words = schema.args[fact.index].words;
    const auto at = std::ranges::find(words, text);
    if (at != words.end()) return at - words.begin();
  }
  return number_of<int64_t>(text);
}

std::string fact_text(const Schema& schema, const ClassFact& known) {
  if (known.is == FactIs::answered) {
    return base::concat(to_string(schema, *known.formula),
                        " == ", kAnswers[static_cast<size_t>(known.value)]);
  }
  const std::string name = schema::describe(schema, known.fact);
  if (known.is == FactIs::absent) return base::concat(name, " == ", kAbsentWord);
  const std::string value = value_text(schema, known.fact, known.value);
  if (known.is == FactIs::multiple) return name + " % " + value + " == 0";
  if (known.is == FactIs::not_multiple) return name + " % " + value + " != 0";
  const auto sign = std::ranges::find(kComparisons, known.is, &Comparison::is);
  return base::concat(name, " ", sign->sign, " ", value);
}

}  // namespace

std::optional<Fact> find_fact(const Schema& schema, std::string_view name) {
  constexpr std::array kKinds{
      FactKind::dtype,     FactKind::rank,      FactKind::present,          FactKind::contiguous,
      FactKind::alignment, FactKind::layout,    FactKind::inner_contiguous, FactKind::device,
      FactKind::scalar,    FactKind::is_default};
  const auto is = [&](Fact fact) { return schema::describe(schema, fact) == name; };
  if (const auto dim = schema::resolve_fact(schema, FactKind::dim, name)) return dim;
  if (schema::means_ambient(schema, name)) {
    return schema::resolve_fact(schema, FactKind::ambient, name);
  }
  for (size_t i = 0; i < schema.args.size(); ++i) {
    for (const FactKind kind : kKinds) {
      const Fact fact{kind, static_cast<uint8_t>(i)};
      if (is(fact)) return fact;
    }
  }
  if (name == "threads") return Fact{FactKind::threads, 0};
  return name == "tag" ? std::optional(Fact{FactKind::tag, 0}) : std::nullopt;
}

namespace {

std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

std::optional<ClassFact> parse_answer(const Schema& schema, std::span<const Formula> formulas,
                                      std::string_view name, std::string_view text) {
  const auto answer = std::ranges::find(kAnswers, text);
  if (answer == kAnswers.end()) return std::nullopt;
  for (const Formula& formula : formulas) {
    if (to_string(schema, formula) != name) continue;
    return ClassFact{formula.facts.front(), FactIs::answered, answer - kAnswers.begin(),
                     std::make_shared<const Formula>(formula)};
  }
  return std::nullopt;
}

/// Parses "NAME SIGN VALUE", "NAME % VALUE == 0" or "(FORMULA) == true".
std::optional<ClassFact> parse_fact(const Schema& schema, std::span<const Formula> formulas,
                                    std::string_view text) {
  const std::string_view name = take_word(text), sign = take_word(text), word = take_word(text);
  if (name.starts_with('(')) {
    if (sign != "==" || !text.empty()) return std::nullopt;
    return parse_answer(schema, formulas, name, word);
  }
  const auto fact = find_fact(schema, name);
  if (!fact) return std::nullopt;
  if (sign == "==" && word == kAbsentWord && text.empty()) return ClassFact{*fact, FactIs::absent};
  const auto value = value_of_text(schema, *fact, word);
  if (!value || *value == schema::kAbsent) return std::nullopt;
  if (sign == "%" && (text == "== 0" || text == "!= 0") && *value > 0) {
    return ClassFact{*fact, text == "== 0" ? FactIs::multiple : FactIs::not_multiple, *value};
  }
  const auto found = std::ranges::find(kComparisons, sign, &Comparison::sign);
  if (found == kComparisons.end() || !text.empty()) return std::nullopt;
  return ClassFact{*fact, found->is, *value};
}

}  // namespace

std::string to_string(const Schema& schema, const ClassFacts& facts) {
  if (facts.empty()) return std::string(kAlways);
  std::vector<std::string> texts;
  texts.reserve(facts.size());
  for (const ClassFact& fact : facts) texts.push_back(fact_text(schema, fact));
  return base::join(texts, kBetween);
}

Result<ClassFacts> parse_class_facts(const Schema& schema, std::span<const Formula> formulas,
                                     std::string_view text) {
  ClassFacts facts;
  if (text == kAlways) return facts;
  for (std::string_view rest = text;;) {
    const size_t end = rest.find(kBetween);
    const std::string_view part = rest.substr(0, end);
    auto fact = parse_fact(schema, formulas, part);
    if (!fact) {
      return Status(Code::invalid_argument, "lock.fact",
                    base::concat("'", part, "' is not a valid property of calls of ", schema.name));
    }
    facts.push_back(*std::move(fact));
    if (end == std::string_view::npos) return facts;
    rest.remove_prefix(end + kBetween.size());
  }
}

}  // namespace opmux::policy
