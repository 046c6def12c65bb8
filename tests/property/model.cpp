#include "model.hpp"

#include <algorithm>
#include <cctype>

namespace opmux::property {
namespace {

using Words = std::vector<std::string>;
using Fact = std::optional<int64_t>;

/// A call after the schema's checks: arguments with defaults filled in, and its dimensions.
struct Seen {
  std::vector<Value> args;
  std::map<std::string, int64_t> dims;
  std::optional<std::vector<int64_t>> leading;
};

bool absent(const Value& value) {
  return value.tag == ArgTag::none || (value.tag == ArgTag::tensor && !value.tensor.present());
}

// ---- The schema's conditions.

bool convert(const Arg& arg, Value& value) {
  switch (arg.type) {
    case Arg::Type::tensor: return value.tag == ArgTag::tensor;
    case Arg::Type::integer: return value.tag == ArgTag::integer;
    case Arg::Type::boolean: return value.tag == ArgTag::logical;
    case Arg::Type::string: return value.tag == ArgTag::string;
    case Arg::Type::list: return value.tag == ArgTag::integer_list;
    case Arg::Type::floating:
      if (value.tag == ArgTag::integer) value.real = static_cast<double>(value.number);
      return value.tag == ArgTag::integer || value.tag == ArgTag::floating;
    case Arg::Type::enumeration: break;
  }
  if (value.tag == ArgTag::string) {
    value.number = std::find(arg.words.begin(), arg.words.end(), value.text) - arg.words.begin();
  } else if (value.tag != ArgTag::enumeration && value.tag != ArgTag::integer) {
    return false;
  }
  return value.number >= 0 && value.number < static_cast<int64_t>(arg.words.size());
}

bool bind_shape(const Arg& arg, const TensorView& tensor, Seen& seen) {
  long double bytes = static_cast<long double>(tensor.dtype().size_bytes());
  for (const int64_t size : tensor.shape()) {
    if (size < 0) return false;
    bytes *= static_cast<long double>(std::max<int64_t>(size, 1));
  }
  if (bytes > static_cast<long double>(INT64_MAX)) return false;
  if (arg.any_shape) return true;
  const auto shape = tensor.shape();
  if (shape.size() < arg.dims.size() || (shape.size() > arg.dims.size() && !arg.leading))
    return false;
  const size_t before = shape.size() - arg.dims.size();
  if (arg.leading) {
    const std::vector<int64_t> leading(shape.begin(),
                                       shape.begin() + static_cast<ptrdiff_t>(before));
    if (seen.leading && *seen.leading != leading) return false;
    seen.leading = leading;
  }
  for (size_t i = 0; i < arg.dims.size(); ++i) {
    const std::string& name = arg.dims[i];
    const int64_t size = shape[before + i];
    const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    const int64_t wanted = number ? std::stoll(name) : seen.dims.emplace(name, size).first->second;
    if (wanted != size) return false;
  }
  return true;
}

Fact scalar_or_dim(const Schema& schema, const Seen& seen, const std::string& name) {
  if (seen.dims.contains(name)) return seen.dims.at(name);
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (schema.args[i].name == name && !absent(seen.args[i])) return seen.args[i].number;
  }
  return {};
}

bool holds(const Where& where, const Schema& schema, const Seen& seen) {
  const Fact left = scalar_or_dim(schema, seen, where.left);
  const Fact right = where.right.empty() ? Fact(1) : scalar_or_dim(schema, seen, where.right);
  if (!left || !right) return true;
  if (where.compare == "%") return *left % where.factor == 0;
  return where.compare == "==" ? *left == where.factor * *right : *left <= where.factor * *right;
}

std::optional<Seen> check(const Schema& schema, const Call& call) {
  Seen seen;
  std::map<std::string, DType> variables;
  if (call.given.size() > schema.args.size()) return {};
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const Arg& arg = schema.args[i];
    Value value = i < call.given.size() ? call.given[i] : Value{};
    const bool left_out = i >= call.given.size() || (absent(value) && !arg.optional);
    if (left_out && arg.default_value && absent(value)) value = *arg.default_value;
    seen.args.push_back(value);
    if (absent(value)) {
      if (!arg.optional) return {};
      continue;
    }
    if (!convert(arg, seen.args[i])) return {};
    if (arg.type != Arg::Type::tensor) continue;
    if (!bind_shape(arg, value.tensor, seen)) return {};
    if (arg.dtype_variable.empty()) continue;
    const DType dtype = value.tensor.dtype();
    if (variables.emplace(arg.dtype_variable, dtype).first->second != dtype) return {};
  }
  for (const Where& where : schema.where) {
    if (!holds(where, schema, seen)) return {};
  }
  return seen;
}

// ---- Facts.

const Arg* find(const Schema& schema, const std::string& name) {
  for (const Arg& arg : schema.args) {
    if (arg.name == name) return &arg;
  }
  return nullptr;
}

bool has_dim(const Schema& schema, const std::string& name) {
  return std::any_of(schema.args.begin(), schema.args.end(), [&](const Arg& arg) {
    return (name == "rows" && arg.leading) ||
           std::find(arg.dims.begin(), arg.dims.end(), name) != arg.dims.end();
  });
}

int64_t layout_of(const TensorView& tensor) {
  std::vector<int> order;
  for (int i = 0; i < tensor.rank(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return tensor.stride(a) > tensor.stride(b); });
  int64_t packed = 0;
  for (size_t i = order.size(); i-- > 0;) packed = packed * 16 + order[i];
  return packed;
}

int64_t packed_layout(const std::string& digits) {
  int64_t packed = 0;
  for (size_t i = digits.size(); i-- > 0;) packed = packed * 16 + (digits[i] - '0');
  return packed;
}

bool inner_contiguous(const TensorView& t) {
  return t.rank() == 0 || t.dim(t.rank() - 1) <= 1 || t.stride(t.rank() - 1) == 1;
}

int64_t alignment_of(const TensorView& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  int64_t alignment = 1;
  while (alignment < 4096 && address % static_cast<uintptr_t>(2 * alignment) == 0) alignment *= 2;
  return alignment;
}

Fact tensor_fact(uint32_t kind, const TensorView& tensor) {
  switch (kind) {
    case OPMUX_FACT_DTYPE: return tensor.dtype().packed();
    case OPMUX_FACT_RANK: return tensor.rank();
    case OPMUX_FACT_CONTIGUOUS: return tensor.contiguous() ? 1 : 0;
    case OPMUX_FACT_ALIGNMENT: return alignment_of(tensor);
    case OPMUX_FACT_LAYOUT: return layout_of(tensor);
    default: return tensor.device().type | int64_t{tensor.device().id} << 16;
  }
}

struct Question {
  const World* world;
  const Call* call;
  const Seen* seen;

  const Value* value(const std::string& name) const {
    for (size_t i = 0; i < seen->args.size(); ++i) {
      if (world->schema.args[i].name == name) return &seen->args[i];
    }
    return nullptr;
  }

  Fact ambient(const std::string& name) const {
    const Ambient& a = call->ambient;
    return name == "grad"            ? a.grad
           : name == "capturing"     ? a.capturing
           : name == "deterministic" ? a.deterministic
                                     : a.training;
  }

  Fact dim(const std::string& name) const {
    if (name != "rows") return seen->dims.contains(name) ? Fact(seen->dims.at(name)) : Fact();
    if (!seen->leading) return {};
    int64_t rows = 1;
    for (const int64_t size : *seen->leading) rows *= size;
    return rows;
  }

  Fact fact(uint32_t kind, const std::string& name) const {
    if (kind == OPMUX_FACT_AMBIENT) return ambient(name);
    if (kind == OPMUX_FACT_TAG) return call->tag;
    if (kind == OPMUX_FACT_DIM) return dim(name);
    const Value* v = value(name);
    const bool gone = v == nullptr || absent(*v);
    if (kind == OPMUX_FACT_PRESENT) return gone ? 0 : 1;
    if (gone) return {};
    return kind == OPMUX_FACT_SCALAR ? Fact(v->number) : tensor_fact(kind, v->tensor);
  }
};

// ---- Capabilities and verifiers.

std::string check_dim(const Caps::Dim& rule, const Question& ask) {
  const Fact size = ask.dim(rule.dim);
  if (!size) return "";
  switch (rule.relation) {
    case OPMUX_AT_LEAST: return *size >= rule.value ? "" : "caps.at_least";
    case OPMUX_AT_MOST: return *size <= rule.value ? "" : "caps.at_most";
    case OPMUX_MULTIPLE_OF: return *size % rule.value == 0 ? "" : "caps.multiple_of";
    default: return *size == rule.value ? "" : "caps.equals";
  }
}

std::string check_tensor(const Caps::Tensor& rule, const TensorView& t) {
  if ((rule.flags & OPMUX_TENSOR_CONTIGUOUS) != 0 && !t.contiguous()) return "caps.contiguous";
  if ((rule.flags & OPMUX_TENSOR_INNER_CONTIGUOUS) != 0 && !inner_contiguous(t))
    return "caps.inner_contiguous";
  if (t.rank() < rule.min_rank || (rule.max_rank != 0 && t.rank() > rule.max_rank))
    return "caps.rank";
  if (alignment_of(t) < int64_t{rule.alignment}) return "caps.alignment";
  if (!rule.layout.empty() && layout_of(t) != packed_layout(rule.layout)) return "caps.layout";
  return "";
}

std::string check_presence(const Caps::Tensor& rule, const Question& ask) {
  const bool given = ask.fact(OPMUX_FACT_PRESENT, rule.arg) == Fact(1);
  if ((rule.flags & OPMUX_TENSOR_ABSENT) != 0 && given) return "caps.absent";
  return (rule.flags & OPMUX_TENSOR_PRESENT) != 0 && !given ? "caps.present" : "";
}

std::string check_dtypes(const Caps& caps, const Caps::DTypes& rule, const Question& ask) {
  for (const Arg& arg : ask.world->schema.args) {
    const bool named =
        std::any_of(caps.dtype_rules.begin(), caps.dtype_rules.end(),
                    [&](const Caps::DTypes& other) { return other.arg == arg.name; });
    const Value& value = *ask.value(arg.name);
    const bool concerned = rule.arg.empty() ? !named : rule.arg == arg.name;
    if (!concerned || arg.type != Arg::Type::tensor || absent(value)) continue;
    const auto& allowed = rule.allowed;
    if (std::find(allowed.begin(), allowed.end(), value.tensor.dtype()) == allowed.end())
      return "caps.dtype";
  }
  return "";
}

template <class List, class Check>
std::string first_of(const List& list, Check&& check) {
  for (const auto& item : list) {
    if (std::string reason = check(item); !reason.empty()) return reason;
  }
  return "";
}

std::string check_caps(const Caps& caps, const Question& ask) {
  const Schema& schema = ask.world->schema;
  if (ask.value(schema.args[0].name)->tensor.device().type != caps.device_type)
    return "caps.device";
  std::string reason = first_of(
      caps.dtype_rules, [&](const Caps::DTypes& rule) { return check_dtypes(caps, rule, ask); });
  if (!reason.empty()) return reason;
  reason = first_of(caps.tensor_rules, [&](const Caps::Tensor& rule) {
    if (std::string why = check_presence(rule, ask); !why.empty()) return why;
    return first_of(schema.args, [&](const Arg& arg) {
      const Value& value = *ask.value(arg.name);
      const bool concerned = arg.type == Arg::Type::tensor && !absent(value) &&
                             (rule.arg.empty() || rule.arg == arg.name);
      return concerned ? check_tensor(rule, value.tensor) : std::string();
    });
  });
  if (!reason.empty()) return reason;
  for (const Caps::Scalar& rule : caps.scalar_rules) {
    const Fact value = ask.fact(OPMUX_FACT_SCALAR, rule.arg);
    if (value && std::find(rule.allowed.begin(), rule.allowed.end(), *value) == rule.allowed.end())
      return "caps.scalar";
  }
  reason = first_of(caps.dim_rules, [&](const Caps::Dim& rule) { return check_dim(rule, ask); });
  if (!reason.empty()) return reason;
  return caps.no_grad && ask.call->ambient.grad ? "caps.inference_only" : "";
}

/// Without a list: scalars, dtypes, ranks and devices of the arguments it was built for.
bool lists(const Candidate& candidate, const Schema& schema) {
  const Verifier& verifier = *candidate.verifier;
  const auto same = [&](const FactRef& fact) {
    return fact.kind == verifier.asks.kind && fact.name == verifier.asks.name;
  };
  if (verifier.reads) return std::any_of(verifier.reads->begin(), verifier.reads->end(), same);
  const Arg* arg = find(schema, verifier.asks.name);
  const bool known = arg != nullptr && arg < schema.args.data() + candidate.known_args;
  const uint32_t kind = verifier.asks.kind;
  return known && (kind == OPMUX_FACT_SCALAR || kind == OPMUX_FACT_DTYPE ||
                   kind == OPMUX_FACT_RANK || kind == OPMUX_FACT_DEVICE);
}

std::string check_verifier(const Candidate& candidate, const Question& ask) {
  if (!candidate.verifier || !lists(candidate, ask.world->schema)) return "";
  const Verifier& verifier = *candidate.verifier;
  const Fact fact = ask.fact(verifier.asks.kind, verifier.asks.name);
  if (!fact || *fact % verifier.modulo != verifier.rest) return "";
  return verifier.breaks ? "verify.broken" : "verify.refused";
}

bool is_default(const Arg& arg, const Value& value) {
  if (!arg.default_value || absent(value)) return absent(value);
  const Value& wanted = *arg.default_value;
  if (arg.type == Arg::Type::floating) return value.real == wanted.real;
  if (arg.type == Arg::Type::string) return value.text == wanted.text;
  if (arg.type == Arg::Type::list) return value.list == wanted.list;
  return value.number == wanted.number;
}

/// Everything but policy: backend, machine, known arguments, capabilities, surroundings, verifier.
std::string refusal(const Candidate& candidate, const Question& ask) {
  const Backend& backend = ask.world->backends[candidate.backend];
  if (!backend.enabled) return "backend.disabled";
  if (!backend.available) return "backend.unavailable";
  if (!candidate.caps.features.empty()) return "caps.cpu_features";
  for (size_t i = candidate.known_args; i < ask.seen->args.size(); ++i) {
    if (!is_default(ask.world->schema.args[i], ask.seen->args[i]))
      return "schema.argument_not_known";
  }
  if (std::string reason = check_caps(candidate.caps, ask); !reason.empty()) return reason;
  if (ask.call->ambient.deterministic && (candidate.flags & OPMUX_IMPL_DETERMINISTIC) == 0)
    return "caps.deterministic";
  if (ask.call->ambient.capturing && (candidate.flags & OPMUX_IMPL_CAPTURE_SAFE) == 0)
    return "caps.capture_safe";
  return check_verifier(candidate, ask);
}

// ---- Policy.

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

bool known(const Condition& condition, const Schema& schema) {
  const Condition::Node& node = condition.node();
  using K = Condition::Kind;
  if (node.kind >= K::all_of) {
    return std::all_of(node.operands.begin(), node.operands.end(),
                       [&](const Condition& operand) { return known(operand, schema); });
  }
  if (node.kind == K::ambient || node.kind == K::tag) return true;
  if (node.kind == K::dim) return has_dim(schema, node.name);
  if (node.kind == K::rows) return has_dim(schema, "rows");
  const Arg* arg = find(schema, node.name);
  if (arg == nullptr) return false;
  if (node.kind == K::present) return true;
  if (node.kind != K::scalar) return arg->type == Arg::Type::tensor;
  return arg->type == Arg::Type::integer || arg->type == Arg::Type::boolean ||
         arg->type == Arg::Type::enumeration;
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

bool compare_fact(const Condition::Node& node, Fact fact) {
  if (!fact) return node.compare == Compare::not_equal;
  return compare(node.compare, *fact, node.value);
}

bool holds(const Condition& condition, const Question& ask) {
  const Condition::Node& node = condition.node();
  const auto operand_holds = [&](const Condition& operand) { return holds(operand, ask); };
  switch (node.kind) {
    case Condition::Kind::all_of:
      return std::all_of(node.operands.begin(), node.operands.end(), operand_holds);
    case Condition::Kind::any_of:
      return std::any_of(node.operands.begin(), node.operands.end(), operand_holds);
    case Condition::Kind::negation: return !holds(node.operands[0], ask);
    case Condition::Kind::dim: return compare_fact(node, ask.dim(node.name));
    case Condition::Kind::rows: return compare_fact(node, ask.dim("rows"));
    case Condition::Kind::rank: return compare_fact(node, ask.fact(OPMUX_FACT_RANK, node.name));
    case Condition::Kind::scalar: return compare_fact(node, ask.fact(OPMUX_FACT_SCALAR, node.name));
    case Condition::Kind::tag: return ask.call->tag == node.value;
    case Condition::Kind::dtype: return ask.fact(OPMUX_FACT_DTYPE, node.name) == Fact(node.value);
    case Condition::Kind::present: return ask.fact(OPMUX_FACT_PRESENT, node.name) == Fact(1);
    case Condition::Kind::contiguous: return ask.fact(OPMUX_FACT_CONTIGUOUS, node.name) == Fact(1);
    case Condition::Kind::ambient: return ask.ambient(node.name) == Fact(1);
    case Condition::Kind::aligned:
      return ask.fact(OPMUX_FACT_ALIGNMENT, node.name).value_or(0) >= node.value;
    case Condition::Kind::layout:
      return ask.fact(OPMUX_FACT_LAYOUT, node.name) == Fact(packed_layout(node.text));
    case Condition::Kind::device:
      return ask.fact(OPMUX_FACT_DEVICE, node.name).value_or(-1) % 65536 == node.value;
  }
  return false;
}

/// One voice of a policy that speaks about this call: a rule, an operator's own order, the rest.
struct Voice {
  size_t layer;
  Rule rule;
  Words allow_vendors, deny_vendors;
};

void add_voices(const Policy& policy, size_t layer, const Question& ask,
                std::vector<Voice>& voices) {
  const Schema& schema = ask.world->schema;
  std::vector<Rule> rules = policy.rules;
  std::stable_sort(rules.begin(), rules.end(),
                   [](const Rule& a, const Rule& b) { return a.rank > b.rank; });
  for (Rule& rule : rules) {
    if (!glob(rule.op.c_str(), schema.name.c_str())) continue;
    if (rule.when && (!known(*rule.when, schema) || !holds(*rule.when, ask))) continue;
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
std::vector<Voice> voices_of(const Question& ask) {
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
  for (size_t i = 0; i < layers.size(); ++i) add_voices(*layers[i], i, ask, voices);
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

struct Ruling {
  std::vector<Voice> voices;
  const Voice* order;
  const Voice* prefer;
  const Voice* allow;
  const Voice* allow_vendors;
  Words tiers;

  explicit Ruling(const Question& ask)
      : voices(voices_of(ask)),
        order(first_with(voices, [](const Voice& v) { return v.rule.order; })),
        prefer(first_with(voices, [](const Voice& v) { return v.rule.prefer; })),
        allow(first_with(voices, [](const Voice& v) { return v.rule.allow; })),
        allow_vendors(first_with(voices, [](const Voice& v) { return v.allow_vendors; })) {
    if (order != nullptr && (prefer == nullptr || order->layer <= prefer->layer)) {
      tiers = order->rule.order;
    } else if (prefer != nullptr) {
      tiers = expanded(prefer->rule.prefer);
    }
  }

  bool strict() const {
    for (const Voice& voice : voices) {
      if (voice.rule.strict) return *voice.rule.strict;
    }
    return false;
  }

  bool allows_none() const {
    return std::any_of(voices.begin(), voices.end(),
                       [](const Voice& voice) { return voice.rule.allow_none; });
  }

  std::string refusal(const Candidate& candidate, const Backend& backend) const {
    const auto in = [&](const Words& tokens) {
      return place_in(tokens, candidate, backend) < tokens.size();
    };
    const auto vendor_in = [&](const Words& names) {
      return std::find(names.begin(), names.end(), backend.vendor) != names.end();
    };
    const bool vendor = backend.kind == Kind::vendor;
    for (const Voice& v : voices) {
      if (in(v.rule.deny)) return "policy.denied";
    }
    for (const Voice& v : voices) {
      if (vendor && vendor_in(v.deny_vendors)) return "policy.vendor_denied";
    }
    for (const Voice& v : voices) {
      if (!v.rule.require.empty() && !in(v.rule.require)) return "policy.outside_require";
    }
    if (order != nullptr && !in(order->rule.order)) return "policy.outside_order";
    if (allow != nullptr && !in(allow->rule.allow)) return "policy.not_allowed";
    if (allow_vendors != nullptr && vendor && !vendor_in(allow_vendors->allow_vendors))
      return "policy.vendor_not_allowed";
    return "";
  }

  double score(const Candidate& candidate, const Backend& backend, int priority) const {
    double add = priority, multiply = 1;
    for (const Voice& voice : voices) {
      for (const Boost& boost : voice.rule.boost) {
        if (!matches(boost.impl, candidate, backend)) continue;
        add += boost.add;
        multiply *= boost.multiply;
      }
    }
    return std::clamp(add * multiply, 0.0, 1e6);
  }
};

struct Accepted {
  size_t tier;
  double score;
  int priority;
  std::string id;
};

bool better(const Accepted& a, const Accepted& b) {
  if (a.tier != b.tier) return a.tier < b.tier;
  if (a.score != b.score) return a.score > b.score;
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.id < b.id;
}

bool no_output_element(const World& world, const Seen& seen) {
  for (size_t i = 0; i < seen.args.size(); ++i) {
    if (!world.schema.args[i].output || absent(seen.args[i])) continue;
    const auto shape = seen.args[i].tensor.shape();
    if (std::find(shape.begin(), shape.end(), 0) == shape.end()) return false;
  }
  return true;
}

}  // namespace

Expected choose(const World& world, const Call& call) {
  Expected expected;
  const std::optional<Seen> seen = check(world.schema, call);
  if (!seen) return expected;
  const Question ask{&world, &call, &*seen};
  const Ruling ruling(ask);
  expected.valid = true;
  expected.empty = no_output_element(world, *seen);
  expected.strict = ruling.strict();
  std::vector<Accepted> accepted;
  for (const Candidate& candidate : world.candidates) {
    if (!candidate.registered) continue;
    const Backend& backend = world.backends[candidate.backend];
    const int priority = candidate.priority < 0 ? priority_of(backend.kind) : candidate.priority;
    const double score = ruling.score(candidate, backend, priority);
    expected.scores[candidate.id] = score;
    std::string reason = ruling.refusal(candidate, backend);
    if (reason.empty()) reason = refusal(candidate, ask);
    if (reason.empty()) {
      accepted.push_back(
          {place_in(ruling.tiers, candidate, backend), score, priority, candidate.id});
    } else {
      expected.refused[candidate.id] = reason;
    }
  }
  std::sort(accepted.begin(), accepted.end(), better);
  for (const Accepted& a : accepted) expected.order.push_back(a.id);
  return expected;
}

bool leaves_nothing(const World& world, const Policy& code) {
  World trial = world;
  trial.code = code;
  const Call nothing;
  Seen seen;
  seen.args.resize(world.schema.args.size());
  const Ruling ruling(Question{&trial, &nothing, &seen});
  bool any = false;
  for (const Candidate& c : trial.candidates) {
    if (!c.registered) continue;
    if (ruling.refusal(c, trial.backends[c.backend]).empty()) return false;
    any = true;
  }
  return any && !ruling.allows_none();
}

}  // namespace opmux::property
