#include <algorithm>

#include "question.hpp"

namespace opmux::property {
namespace {

bool inner_contiguous(const TensorView& t) {
  return t.rank() == 0 || t.dim(t.rank() - 1) <= 1 || t.stride(t.rank() - 1) == 1;
}

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

/// Without a list, a verifier reads the scalars, dtypes, ranks and devices of the arguments it was
/// built for.
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

}  // namespace

std::string refusal(const Candidate& candidate, const Question& ask) {
  const Backend& backend = ask.world->backends[candidate.backend];
  if (!backend.enabled) return "backend.disabled";
  const TensorView& first = ask.value(ask.world->schema.args[0].name)->tensor;
  if (first.device().type != candidate.caps.device_type) return "caps.device";
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

}  // namespace opmux::property
