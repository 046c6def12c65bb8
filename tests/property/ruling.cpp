#include "ruling.hpp"

#include <algorithm>
#include <functional>
#include <sstream>

namespace opmux::property {
namespace {

bool glob(const char* pattern, const char* text) {
  if (*pattern == '\0') return *text == '\0';
  if (*pattern != '*') return *pattern == *text && glob(pattern + 1, text + 1);
  return glob(pattern + 1, text) || (*text != '\0' && *text != '/' && glob(pattern, text + 1));
}

std::string kind_word(const std::string& token) {
  return token == "flaggems" || token == "flagos" ? "default" : token;
}

bool matches(const std::string& token, const Candidate& candidate, const Backend& backend) {
  if (token.starts_with("impl:")) return token.substr(5) == candidate.id;
  if (token.starts_with("vendor:"))
    return backend.kind == Kind::vendor && token.substr(7) == backend.vendor;
  if (token.find('/') != std::string::npos) return glob(token.c_str(), candidate.id.c_str());
  return kind_word(token) == name_of(backend.kind);
}

size_t place_in(const Words& tokens, const Candidate& candidate, const Backend& backend) {
  size_t place = 0;
  while (place < tokens.size() && !matches(tokens[place], candidate, backend)) ++place;
  return place;
}

Words expanded(const Words& prefer) {
  const Words kinds{"default", "vendor", "reference"};
  if (prefer.size() != 1) return prefer;
  const std::string first = kind_word(prefer[0]);
  if (std::find(kinds.begin(), kinds.end(), first) == kinds.end()) return prefer;
  Words all{first};
  for (const std::string& kind : kinds) {
    if (kind != first) all.push_back(kind);
  }
  return all;
}

/// A text of the form "M * N > 64", the only form that is drawn.
struct Computed {
  explicit Computed(const std::string& text) {
    std::istringstream(text) >> left >> sign >> right >> compare >> value;
  }
  std::string left, right, compare;
  char sign = '?';
  int64_t value = 0;
};

bool known(const Condition& condition, const Schema& schema) {
  const Condition::Node& node = condition.node();
  using K = Condition::Kind;
  if (node.kind >= K::all_of && node.kind != K::real) {
    return std::all_of(node.operands.begin(), node.operands.end(),
                       [&](const Condition& operand) { return known(operand, schema); });
  }
  if (node.kind == K::ambient || node.kind == K::tag) return true;
  if (node.kind == K::text) {
    const Computed text(node.text);
    return has_dim(schema, text.left) && has_dim(schema, text.right);
  }
  if (node.kind == K::dim) return has_dim(schema, node.name);
  if (node.kind == K::rows) return has_dim(schema, "rows");
  const Arg* arg = find(schema, node.name);
  if (arg == nullptr) return false;
  if (node.kind == K::present) return true;
  const bool integer = arg->type == Arg::Type::integer;
  const bool real = arg->type == Arg::Type::floating && node.compare != Compare::multiple_of;
  if (node.kind == K::real) return real || (integer && node.compare != Compare::multiple_of);
  if (node.kind != K::scalar) return arg->type == Arg::Type::tensor;
  return real || integer || arg->type == Arg::Type::boolean || arg->type == Arg::Type::enumeration;
}

bool compare_reals(Compare how, double a, double b) {
  switch (how) {
    case Compare::equal: return a == b;
    case Compare::not_equal: return a != b;
    case Compare::less: return a < b;
    case Compare::less_equal: return a <= b;
    case Compare::greater: return a > b;
    default: return a >= b;
  }
}

bool compare(Compare how, int64_t a, int64_t b) {
  switch (how) {
    case Compare::equal: return a == b;
    case Compare::not_equal: return a != b;
    case Compare::less: return a < b;
    case Compare::less_equal: return a <= b;
    case Compare::greater: return a > b;
    case Compare::greater_equal: return a >= b;
    case Compare::multiple_of: return a % b == 0;
  }
  return false;
}

/// nullopt if the condition asks about something absent.
using Truth = std::optional<bool>;

Truth compare_fact(const Condition::Node& node, Fact fact) {
  if (!fact) return {};
  return compare(node.compare, *fact, node.value);
}

/// Compares a float, or an int with a float.
Truth compare_numbers(const Condition::Node& node, const Question& ask) {
  const Value& value = *ask.value(node.name);
  if (absent(value)) return {};
  const bool real = find(ask.world->schema, node.name)->type == Arg::Type::floating;
  const double wanted =
      node.kind == Condition::Kind::real ? node.real : static_cast<double>(node.value);
  return compare_reals(node.compare, real ? value.real : static_cast<double>(value.number), wanted);
}

Truth is(Fact fact, int64_t value) {
  if (!fact) return {};
  return *fact == value;
}

Fact computed(char sign, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (sign) {
    case '+': return __builtin_add_overflow(a, b, &result) ? Fact() : Fact(result);
    case '-': return __builtin_sub_overflow(a, b, &result) ? Fact() : Fact(result);
    case '*': return __builtin_mul_overflow(a, b, &result) ? Fact() : Fact(result);
    case '/': return b == 0 ? Fact() : Fact(a / b);
    default: return b == 0 ? Fact() : Fact(a % b);
  }
}

Truth truth_of(const Computed& text, const Question& ask) {
  const Fact left = ask.dim(text.left), right = ask.dim(text.right);
  const Fact number = left && right ? computed(text.sign, *left, *right) : Fact();
  if (!number) return {};
  const int64_t a = *number, b = text.value;
  if (text.compare == "==") return a == b;
  if (text.compare == "!=") return a != b;
  if (text.compare == "<") return a < b;
  if (text.compare == "<=") return a <= b;
  return text.compare == ">" ? a > b : a >= b;
}

Truth truth_of(const Condition& condition, const Question& ask);

/// If any operand equals `deciding`, that is the result; otherwise nullopt if any operand is
/// nullopt.
Truth joined(const Condition::Node& node, const Question& ask, bool deciding) {
  Truth all = !deciding;
  for (const Condition& operand : node.operands) {
    const Truth one = truth_of(operand, ask);
    if (one == deciding) return deciding;
    if (!one) all.reset();
  }
  return all;
}

Truth truth_of(const Condition& condition, const Question& ask) {
  const Condition::Node& node = condition.node();
  const auto fact = [&](uint32_t kind) { return ask.fact(kind, node.name); };
  switch (node.kind) {
    case Condition::Kind::all_of: return joined(node, ask, false);
    case Condition::Kind::any_of: return joined(node, ask, true);
    case Condition::Kind::negation: {
      const Truth inner = truth_of(node.operands[0], ask);
      return inner ? Truth(!*inner) : Truth();
    }
    case Condition::Kind::text: return truth_of(Computed(node.text), ask);
    case Condition::Kind::dim: return compare_fact(node, ask.dim(node.name));
    case Condition::Kind::rows: return compare_fact(node, ask.dim("rows"));
    case Condition::Kind::rank: return compare_fact(node, fact(OPMUX_FACT_RANK));
    case Condition::Kind::real: return compare_numbers(node, ask);
    case Condition::Kind::scalar:
      if (find(ask.world->schema, node.name)->type == Arg::Type::floating) {
        return compare_numbers(node, ask);
      }
      return compare_fact(node, fact(OPMUX_FACT_SCALAR));
    case Condition::Kind::tag: return ask.call->tag == node.value;
    case Condition::Kind::dtype: return is(fact(OPMUX_FACT_DTYPE), node.value);
    case Condition::Kind::present: return is(fact(OPMUX_FACT_PRESENT), 1);
    case Condition::Kind::contiguous: return is(fact(OPMUX_FACT_CONTIGUOUS), 1);
    case Condition::Kind::ambient: return is(ask.ambient(node.name), 1);
    case Condition::Kind::layout: return is(fact(OPMUX_FACT_LAYOUT), packed_layout(node.text));
    case Condition::Kind::aligned: {
      const Fact alignment = fact(OPMUX_FACT_ALIGNMENT);
      return alignment ? Truth(*alignment >= node.value) : Truth();
    }
    case Condition::Kind::device: {
      const Fact device = fact(OPMUX_FACT_DEVICE);
      return device ? Truth(*device % 65536 == node.value) : Truth();
    }
  }
  return {};
}

/// Whether a rule's condition holds.
using Speaks = std::function<bool(const Rule&)>;

void add_voices(const Policy& policy, size_t layer, const Question& ask, const Speaks& speaks,
                std::vector<Voice>& voices) {
  const Schema& schema = ask.world->schema;
  std::vector<Rule> rules;
  for (const Rule& rule : policy.rules) {
    if (!applies(rule, schema) || (rule.when && !speaks(rule))) continue;
    const auto lower = std::find_if(rules.begin(), rules.end(),
                                    [&](const Rule& other) { return other.rank < rule.rank; });
    rules.insert(lower, rule);
  }
  for (Rule& rule : rules) {
    if (rule.expired) {
      rule.prefer = rule.order = rule.allow = {};
      rule.boost = {};
      rule.strict = {};
    }
    voices.push_back({layer, rule, {}, {}});
  }
  if (policy.per_op.contains(schema.name))
    voices.push_back({layer, {.order = policy.per_op.at(schema.name)}, {}, {}});
  voices.push_back({layer,
                    {.require = policy.require,
                     .prefer = policy.prefer,
                     .deny = policy.deny,
                     .allow = policy.allow,
                     .strict = policy.strict},
                    policy.allow_vendors,
                    policy.deny_vendors});
}

/// Strongest first: scopes from the innermost, code, environment.
std::vector<Voice> voices_of(const Question& ask, const Speaks& speaks) {
  std::vector<const Policy*> layers;
  Words texts;
  const auto& scopes = ask.call->scopes;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    const std::string text = text_of(*scope);
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
    texts.push_back(text);
    layers.push_back(&*scope);
  }
  layers.push_back(&ask.world->code);
  layers.push_back(&ask.world->environment);
  std::vector<Voice> voices;
  for (size_t i = 0; i < layers.size(); ++i) add_voices(*layers[i], i, ask, speaks, voices);
  return voices;
}

/// The first voice that sets a list, or null.
template <class Field>
const Voice* first_with(const std::vector<Voice>& voices, Field&& field) {
  for (const Voice& voice : voices) {
    if (!field(voice).empty()) return &voice;
  }
  return nullptr;
}

bool is_for(const Rule& rule, const Schema& schema) {
  return glob(rule.op.c_str(), schema.name.c_str());
}

bool in_vain(const Rule& rule, const Schema& schema) {
  return is_for(rule, schema) && !applies(rule, schema);
}

}  // namespace

bool applies(const Rule& rule, const Schema& schema) {
  return is_for(rule, schema) && (!rule.when || known(*rule.when, schema));
}

bool asks_in_vain(const Policy& policy, const Schema& schema) {
  return std::any_of(policy.rules.begin(), policy.rules.end(),
                     [&](const Rule& rule) { return rule.op != "*" && in_vain(rule, schema); });
}

Policy without_vain_rules(Policy policy, const Schema& schema) {
  std::erase_if(policy.rules, [&](const Rule& rule) { return in_vain(rule, schema); });
  return policy;
}

Policy without_vain_general_rules(Policy policy, const Schema& schema) {
  std::erase_if(policy.rules,
                [&](const Rule& rule) { return rule.op == "*" && in_vain(rule, schema); });
  return policy;
}

std::string said_of(Policy policy, const Schema& schema) {
  std::erase_if(policy.rules, [&](const Rule& rule) { return !is_for(rule, schema); });
  std::erase_if(policy.per_op, [&](const auto& entry) { return entry.first != schema.name; });
  return text_of(policy);
}

Ruling::Ruling(const Question& ask)
    : Ruling(voices_of(ask, [&](const Rule& rule) { return truth_of(*rule.when, ask) == true; })) {}

Ruling::Ruling(const Question& ask, const Rule* assumed)
    : Ruling(voices_of(ask, [&](const Rule& rule) {
        return assumed != nullptr && assumed->when &&
               rule.when->to_string() == assumed->when->to_string();
      })) {}

Ruling::Ruling(std::vector<Voice> voices)
    : voices_(std::move(voices)),
      order_(first_with(voices_, [](const Voice& v) { return v.rule.order; })),
      prefer_(first_with(voices_, [](const Voice& v) { return v.rule.prefer; })),
      allow_(first_with(voices_, [](const Voice& v) { return v.rule.allow; })),
      allow_vendors_(first_with(voices_, [](const Voice& v) { return v.allow_vendors; })) {
  if (order_ != nullptr && (prefer_ == nullptr || order_->layer <= prefer_->layer)) {
    tiers_ = order_->rule.order;
  } else if (prefer_ != nullptr) {
    tiers_ = expanded(prefer_->rule.prefer);
  }
}

bool Ruling::strict() const {
  for (const Voice& voice : voices_) {
    if (voice.rule.strict) return *voice.rule.strict;
  }
  return false;
}

bool Ruling::allows_none() const {
  return std::any_of(voices_.begin(), voices_.end(),
                     [](const Voice& voice) { return voice.rule.allow_none; });
}

std::string Ruling::refusal(const Candidate& candidate, const Backend& backend) const {
  const auto in = [&](const Words& tokens) {
    return place_in(tokens, candidate, backend) < tokens.size();
  };
  const auto vendor_in = [&](const Words& names) {
    return std::find(names.begin(), names.end(), backend.vendor) != names.end();
  };
  const bool vendor = backend.kind == Kind::vendor;
  for (const Voice& v : voices_) {
    if (in(v.rule.deny)) return "policy.denied";
  }
  for (const Voice& v : voices_) {
    if (vendor && vendor_in(v.deny_vendors)) return "policy.vendor_denied";
  }
  for (const Voice& v : voices_) {
    if (!v.rule.require.empty() && !in(v.rule.require)) return "policy.outside_require";
  }
  if (order_ != nullptr && !in(order_->rule.order)) return "policy.outside_order";
  if (allow_ != nullptr && !in(allow_->rule.allow)) return "policy.not_allowed";
  if (allow_vendors_ != nullptr && vendor && !vendor_in(allow_vendors_->allow_vendors))
    return "policy.vendor_not_allowed";
  return "";
}

double Ruling::score(const Candidate& candidate, const Backend& backend, int priority) const {
  double add = priority, multiply = 1;
  for (const Voice& voice : voices_) {
    for (const Boost& boost : voice.rule.boost) {
      if (!matches(boost.impl, candidate, backend)) continue;
      add += boost.add;
      multiply *= boost.multiply;
    }
  }
  return std::clamp(add * multiply, 0.0, 1e6);
}

size_t Ruling::tier(const Candidate& candidate, const Backend& backend) const {
  return place_in(tiers_, candidate, backend);
}

}  // namespace opmux::property
