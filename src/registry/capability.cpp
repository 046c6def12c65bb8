#include "registry/capability.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace opmux::registry {
namespace {

bool passes(const CapabilityCheck& check, int64_t value) {
  if (value == kAbsent) return true;
  value &= check.mask;
  if (check.allowed.empty()) return holds(check.predicate, value);
  return std::find(check.allowed.begin(), check.allowed.end(), value) != check.allowed.end();
}

std::string device_word(int64_t type) {
  const std::string text = name_of(Device{static_cast<int32_t>(type), 0});
  return text.substr(0, text.find(':'));
}

std::string layout_word(int64_t packed, int rank) {
  std::string digits;
  for (int i = 0; i < rank; ++i) digits += static_cast<char>('0' + (packed >> (4 * i) & 15));
  return digits;
}

/// The rank of the tensor that a packed layout describes; 1 for rank 0.
int rank_of_layout(int64_t packed) {
  int rank = 1;
  for (int i = 0; i < OPMUX_MAX_RANK; ++i) {
    rank = std::max(rank, static_cast<int>(packed >> (4 * i) & 15) + 1);
  }
  return rank;
}

std::string scalar_word(const ArgSpec& arg, int64_t value) {
  if (arg.type == ArgType::boolean) return value == 0 ? "false" : "true";
  const bool word = arg.type == ArgType::enumeration && value >= 0 &&
                    value < static_cast<int64_t>(arg.words.size());
  return word ? arg.words[static_cast<size_t>(value)] : std::to_string(value);
}

std::string word_for(const Schema& schema, Fact fact, int64_t value) {
  switch (fact.kind) {
    case FactKind::dtype: return name_of(DType::from_packed(static_cast<uint32_t>(value)));
    case FactKind::device: return device_word(value);
    case FactKind::layout: return layout_word(value, rank_of_layout(value));
    case FactKind::scalar: return scalar_word(schema.args[fact.index], value);
    default: return std::to_string(value);
  }
}

/// Joins alternatives: "f32", "f32 or bf16", "f32, f16 or bf16".
std::string alternatives(const Schema& schema, Fact fact, const std::vector<int64_t>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 == values.size() ? " or " : ", ";
    text += word_for(schema, fact, values[i]);
  }
  return text;
}

std::string demand(const CapabilityCheck& check, const Schema& schema) {
  const Predicate& predicate = check.predicate;
  if (!check.allowed.empty()) return alternatives(schema, predicate.fact, check.allowed);
  const std::string value = word_for(schema, predicate.fact, predicate.value);
  switch (predicate.relation) {
    case Relation::at_least: return "at least " + value;
    case Relation::at_most: return "at most " + value;
    case Relation::multiple_of: return "a multiple of " + value;
    case Relation::equals: break;
  }
  return value;
}

}  // namespace

const CapabilityCheck* first_failing(const Capability& capability, const Signature& signature) {
  for (const CapabilityCheck& check : capability.checks) {
    if (!passes(check, value_of(signature, check.predicate.fact))) return &check;
  }
  return nullptr;
}

const CapabilityCheck* failing_device(const Capability& capability, const Signature& signature) {
  for (const CapabilityCheck& check : capability.checks) {
    if (check.reason != Reason::caps_device) continue;
    return passes(check, value_of(signature, check.predicate.fact)) ? nullptr : &check;
  }
  return nullptr;
}

std::string describe_failure(const CapabilityCheck& check, const Signature& signature) {
  const Schema& schema = *signature.schema;
  const Fact fact = check.predicate.fact;
  const int64_t value = value_of(signature, fact) & check.mask;
  switch (check.reason) {
    case Reason::caps_contiguous: return schema.args[fact.index].name + " must be contiguous";
    case Reason::caps_inner_contiguous:
      return base::concat("the last dimension of ", schema.args[fact.index].name,
                          " must have stride 1");
    case Reason::caps_absent: return schema.args[fact.index].name + " must be absent";
    case Reason::caps_present: return schema.args[fact.index].name + " must be given";
    case Reason::caps_inference_only:
      return "grad must be off: the implementation is for inference only";
    case Reason::caps_alignment:
      return base::concat(schema.args[fact.index].name, " must be aligned to ",
                          check.predicate.value, " bytes, is aligned to ", value);
    default: break;
  }
  return base::concat(describe(schema, fact), " must be ", demand(check, schema), ", is ",
                      word_for(schema, fact, value));
}

void add_dependencies(const Capability& capability, Dependencies& into) {
  for (const CapabilityCheck& check : capability.checks) {
    if (check.allowed.empty()) {
      into.add(check.predicate);
    } else {
      into.add(check.predicate.fact);
    }
  }
}

}  // namespace opmux::registry
