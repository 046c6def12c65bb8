#include "registry/implementation/capability.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>

#include "base/system/cpu_features.hpp"
#include "base/text.hpp"
#include "registry/implementation/architecture.hpp"

namespace opmux::registry {
namespace {

bool passes(const CapabilityCheck& check, int64_t value) {
  if (value == schema::kAbsent) return true;
  value &= check.mask;
  if (check.allowed.empty()) return schema::holds(check.predicate, value);
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

std::string scalar_word(const schema::ArgSpec& arg, int64_t value) {
  if (arg.type == schema::ArgType::boolean) return value == 0 ? "false" : "true";
  const bool word = arg.type == schema::ArgType::enumeration && value >= 0 &&
                    value < static_cast<int64_t>(arg.words.size());
  return word ? arg.words[static_cast<size_t>(value)] : std::to_string(value);
}

std::string word_for(const schema::Schema& schema, schema::Fact fact, int64_t value) {
  switch (fact.kind) {
    case schema::FactKind::dtype: return name_of(DType::from_packed(static_cast<uint32_t>(value)));
    case schema::FactKind::device: return device_word(value);
    case schema::FactKind::layout: return layout_word(value, rank_of_layout(value));
    case schema::FactKind::scalar: return scalar_word(schema.args[fact.index], value);
    default: return std::to_string(value);
  }
}

/// Joins alternatives: "f32", "f32 or bf16", "f32, f16 or bf16".
std::string alternatives(const schema::Schema& schema, schema::Fact fact,
                         const std::vector<int64_t>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 == values.size() ? " or " : ", ";
    text += word_for(schema, fact, values[i]);
  }
  return text;
}

std::string demand(const CapabilityCheck& check, const schema::Schema& schema) {
  const schema::Predicate& predicate = check.predicate;
  if (!check.allowed.empty()) return alternatives(schema, predicate.fact, check.allowed);
  const std::string value = word_for(schema, predicate.fact, predicate.value);
  switch (predicate.relation) {
    case schema::Relation::at_least: return "at least " + value;
    case schema::Relation::at_most: return "at most " + value;
    case schema::Relation::multiple_of: return "a multiple of " + value;
    case schema::Relation::equals: break;
  }
  return value;
}

}  // namespace

const CapabilityCheck* first_failing(const Capability& capability,
                                     const schema::Signature& signature) {
  for (const CapabilityCheck& check : capability.checks) {
    if (!passes(check, schema::value_of(signature, check.predicate.fact))) return &check;
  }
  return nullptr;
}

const CapabilityCheck* failing_device(const Capability& capability,
                                      const schema::Signature& signature) {
  for (const CapabilityCheck& check : capability.checks) {
    if (check.reason != Reason::caps_device) continue;
    return passes(check, schema::value_of(signature, check.predicate.fact)) ? nullptr : &check;
  }
  return nullptr;
}

std::string describe_failure(const CapabilityCheck& check, const schema::Signature& signature) {
  const schema::Schema& schema = *signature.schema;
  const schema::Fact fact = check.predicate.fact;
  const int64_t value = schema::value_of(signature, fact) & check.mask;
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
  return base::concat(schema::describe(schema, fact), " must be ", demand(check, schema), ", is ",
                      word_for(schema, fact, value));
}

void add_dependencies(const Capability& capability, schema::Dependencies& into) {
  for (const CapabilityCheck& check : capability.checks) {
    if (check.allowed.empty()) {
      into.add(check.predicate);
    } else {
      into.add(check.predicate.fact);
    }
  }
}

namespace {

constexpr int64_t kDeviceTypeMask = 0xffff;
constexpr uint32_t kTensorFlags = OPMUX_TENSOR_CONTIGUOUS | OPMUX_TENSOR_ABSENT |
                                  OPMUX_TENSOR_PRESENT | OPMUX_TENSOR_INNER_CONTIGUOUS;

Status bad_value(std::string message) {
  return {Code::invalid_argument, "caps.value", std::move(message)};
}

std::optional<Reason> reason_of(uint32_t relation) {
  switch (relation) {
    case OPMUX_AT_LEAST: return Reason::caps_at_least;
    case OPMUX_AT_MOST: return Reason::caps_at_most;
    case OPMUX_MULTIPLE_OF: return Reason::caps_multiple_of;
    case OPMUX_EQUALS: return Reason::caps_equals;
    default: return std::nullopt;
  }
}

/// Builds one Capability. Functions return the error that compile_caps() returns.
class Compiler {
 public:
  Compiler(const schema::Schema& schema, const base::CpuFeatures& cpu)
      : schema_(schema), cpu_(cpu) {}

  Status compile(const Caps& caps);
  Capability take() { return std::move(capability_); }

 private:
  Status device(const Caps& caps);
  Status dtypes(const Caps& caps, const Caps::DTypes& rule);
  Status dim(const Caps::Dim& rule);
  Status tensor(const Caps::Tensor& rule);
  Status tensor_ranges(const Caps::Tensor& rule) const;
  Status tensor_facts(const Caps::Tensor& rule, uint8_t arg);
  Status presence(const Caps::Tensor& rule);
  Status scalar(const Caps::Scalar& rule);

  Result<uint8_t> argument(std::string_view name) const;
  Result<uint8_t> tensor_argument(std::string_view name) const;
  std::vector<uint8_t> tensor_arguments() const;
  void add(Reason reason, schema::Fact fact, schema::Relation relation, int64_t value) {
    capability_.checks.push_back({reason, {fact, relation, value}, -1, {}});
  }
  void add(Reason reason, schema::Fact fact, std::vector<int64_t> allowed) {
    capability_.checks.push_back(
        {reason, {fact, schema::Relation::equals, 0}, -1, std::move(allowed)});
  }

  const schema::Schema& schema_;
  const base::CpuFeatures& cpu_;
  Capability capability_;
};

Status unknown_name(std::string_view what, std::string_view name, const schema::Schema& schema,
                    const std::vector<std::string>& known) {
  return {Code::invalid_argument, "caps.unknown_name",
          base::concat("capabilities name the ", what, " '", name, "', which ", schema.name,
                       " does not have", base::suggestion(name, known))};
}

Result<uint8_t> Compiler::argument(std::string_view name) const {
  const int index = schema_.arg_index(name);
  if (index >= 0) return static_cast<uint8_t>(index);
  std::vector<std::string> known;
  for (const schema::ArgSpec& arg : schema_.args) known.push_back(arg.name);
  return unknown_name("argument", name, schema_, known);
}

Result<uint8_t> Compiler::tensor_argument(std::string_view name) const {
  Result<uint8_t> index = argument(name);
  if (index && !schema_.args[*index].is_tensor()) {
    return bad_value(base::concat("argument '", name, "' of ", schema_.name, " is not a tensor"));
  }
  return index;
}

std::vector<uint8_t> Compiler::tensor_arguments() const {
  std::vector<uint8_t> found;
  for (size_t i = 0; i < schema_.args.size(); ++i) {
    if (schema_.args[i].is_tensor()) found.push_back(static_cast<uint8_t>(i));
  }
  return found;
}

Status Compiler::device(const Caps& caps) {
  if (caps.device_type < 0 || caps.device_type > kDeviceTypeMask) {
    return bad_value(base::concat("device type ", caps.device_type, " is not in 0 to 65535"));
  }
  if (!dotted_numbers(caps.min_arch) || !dotted_numbers(caps.max_arch)) {
    return bad_value("an architecture must be numbers with dots between them, such as 8.6");
  }
  const bool range = !caps.min_arch.empty() && !caps.max_arch.empty();
  if (range && compare_dotted(caps.min_arch, caps.max_arch) > 0) {
    return bad_value(base::concat("no architecture is at least ", caps.min_arch, " and at most ",
                                  caps.max_arch));
  }
  capability_.device_type = caps.device_type;
  capability_.arch = {caps.min_arch, caps.max_arch, std::nullopt};
  const std::vector<uint8_t> tensors = tensor_arguments();
  if (caps.device_type == 0 || tensors.empty()) return {};
  const auto always_there = std::find_if(tensors.begin(), tensors.end(),
                                         [&](uint8_t i) { return !schema_.args[i].optional; });
  const uint8_t arg = always_there == tensors.end() ? tensors.front() : *always_there;
  capability_.arch.device = schema::Fact{schema::FactKind::device, arg};
  add(Reason::caps_device, {schema::FactKind::device, arg}, schema::Relation::equals,
      caps.device_type);
  capability_.checks.back().mask = kDeviceTypeMask;
  return {};
}

Status Compiler::dtypes(const Caps& caps, const Caps::DTypes& rule) {
  std::vector<int64_t> allowed;
  for (const DType dtype : rule.allowed) allowed.push_back(dtype.packed());
  const bool undefined = std::any_of(rule.allowed.begin(), rule.allowed.end(),
                                     [](DType d) { return d.bits == 0 || d.lanes == 0; });
  if (allowed.empty() || undefined) {
    return bad_value(base::concat("the dtypes for '", rule.arg, "' are ",
                                  allowed.empty() ? "an empty list" : "not all defined"));
  }
  if (!rule.arg.empty()) {
    const Result<uint8_t> arg = tensor_argument(rule.arg);
    if (!arg) return arg.error();
    add(Reason::caps_dtype, {schema::FactKind::dtype, *arg}, std::move(allowed));
    return {};
  }
  for (const uint8_t arg : tensor_arguments()) {
    const bool named =
        std::any_of(caps.dtype_rules.begin(), caps.dtype_rules.end(),
                    [&](const Caps::DTypes& other) { return other.arg == schema_.args[arg].name; });
    if (!named) add(Reason::caps_dtype, {schema::FactKind::dtype, arg}, allowed);
  }
  return {};
}

Status Compiler::dim(const Caps::Dim& rule) {
  const std::optional<schema::Fact> fact =
      schema::resolve_fact(schema_, schema::FactKind::dim, rule.dim);
  if (!fact) return unknown_name("dimension", rule.dim, schema_, schema_.size_names());
  const std::optional<Reason> reason = reason_of(rule.relation);
  if (!reason) return bad_value(base::concat("relation ", rule.relation, " is not defined"));
  if (rule.value < (rule.relation == OPMUX_MULTIPLE_OF ? 1 : 0)) {
    return bad_value(base::concat("dimension ", rule.dim, " cannot be compared with ", rule.value));
  }
  add(*reason, *fact, static_cast<schema::Relation>(rule.relation), rule.value);
  return {};
}

Status Compiler::tensor_ranges(const Caps::Tensor& rule) const {
  if ((rule.flags & ~kTensorFlags) != 0) {
    return bad_value(base::concat("tensor flags ", rule.flags, " are not all defined"));
  }
  const int most = rule.max_rank == 0 ? OPMUX_MAX_RANK : rule.max_rank;
  if (rule.min_rank < 0 || most < rule.min_rank || most > OPMUX_MAX_RANK) {
    return bad_value(base::concat("ranks ", rule.min_rank, " to ", rule.max_rank,
                                  " are not a range within 0 to 8"));
  }
  if (rule.alignment != 0 && (!std::has_single_bit(rule.alignment) || rule.alignment > 4096)) {
    return bad_value(
        base::concat("alignment ", rule.alignment, " is not a power of two up to 4096"));
  }
  if (!rule.layout.empty() && !schema::parse_layout(rule.layout)) {
    return bad_value(base::concat("layout '", rule.layout, "' is not an order of dimensions"));
  }
  return {};
}

Status Compiler::tensor_facts(const Caps::Tensor& rule, uint8_t arg) {
  if ((rule.flags & OPMUX_TENSOR_CONTIGUOUS) != 0) {
    add(Reason::caps_contiguous, {schema::FactKind::contiguous, arg}, schema::Relation::equals, 1);
  }
  if ((rule.flags & OPMUX_TENSOR_INNER_CONTIGUOUS) != 0) {
    add(Reason::caps_inner_contiguous, {schema::FactKind::inner_contiguous, arg},
        schema::Relation::equals, 1);
  }
  if (rule.min_rank > 0) {
    add(Reason::caps_rank, {schema::FactKind::rank, arg}, schema::Relation::at_least,
        rule.min_rank);
  }
  if (rule.max_rank > 0) {
    add(Reason::caps_rank, {schema::FactKind::rank, arg}, schema::Relation::at_most, rule.max_rank);
  }
  if (rule.alignment > 1) {
    add(Reason::caps_alignment, {schema::FactKind::alignment, arg}, schema::Relation::at_least,
        rule.alignment);
  }
  if (!rule.layout.empty()) {
    add(Reason::caps_layout, {schema::FactKind::layout, arg}, schema::Relation::equals,
        *schema::parse_layout(rule.layout));
  }
  return {};
}

Status Compiler::presence(const Caps::Tensor& rule) {
  const bool absent = (rule.flags & OPMUX_TENSOR_ABSENT) != 0;
  const bool given = (rule.flags & OPMUX_TENSOR_PRESENT) != 0;
  if (!absent && !given) return {};
  if (absent && given)
    return bad_value("an argument cannot be required to be both absent and present");
  if (rule.arg.empty()) return bad_value("absent and present rules need the name of an argument");
  const Result<uint8_t> arg = argument(rule.arg);
  if (!arg) return arg.error();
  if (absent && !schema_.args[*arg].optional) {
    return bad_value(base::concat("argument '", rule.arg, "' of ", schema_.name,
                                  " is not optional and can never be absent"));
  }
  add(absent ? Reason::caps_absent : Reason::caps_present, {schema::FactKind::present, *arg},
      schema::Relation::equals, given ? 1 : 0);
  return {};
}

Status Compiler::tensor(const Caps::Tensor& rule) {
  if (Status bad = tensor_ranges(rule); !bad.ok()) return bad;
  if (Status bad = presence(rule); !bad.ok()) return bad;
  const bool only_presence = (rule.flags & ~(OPMUX_TENSOR_ABSENT | OPMUX_TENSOR_PRESENT)) == 0 &&
                             rule.min_rank == 0 && rule.max_rank == 0 && rule.alignment == 0 &&
                             rule.layout.empty();
  if (only_presence) {
    return rule.arg.empty() ? Status() : argument(rule.arg).error();
  }
  if (!rule.arg.empty()) {
    const Result<uint8_t> arg = tensor_argument(rule.arg);
    return arg ? tensor_facts(rule, *arg) : arg.error();
  }
  for (const uint8_t arg : tensor_arguments()) {
    if (Status bad = tensor_facts(rule, arg); !bad.ok()) return bad;
  }
  return {};
}

Status Compiler::scalar(const Caps::Scalar& rule) {
  const Result<uint8_t> arg = argument(rule.arg);
  if (!arg) return arg.error();
  const schema::ArgSpec& spec = schema_.args[*arg];
  int64_t least = INT64_MIN + 1, most = INT64_MAX;
  switch (spec.type) {
    case schema::ArgType::integer: break;
    case schema::ArgType::boolean: least = 0, most = 1; break;
    case schema::ArgType::enumeration:
      least = 0, most = static_cast<int64_t>(spec.words.size()) - 1;
      break;
    default:
      return bad_value(base::concat("argument '", rule.arg, "' of ", schema_.name,
                                    " is not an int, bool or enum"));
  }
  const bool within = std::all_of(rule.allowed.begin(), rule.allowed.end(),
                                  [&](int64_t v) { return v >= least && v <= most; });
  if (rule.allowed.empty() || !within) {
    return bad_value(base::concat("the values for '", rule.arg, "' are ",
                                  within ? "an empty list" : "not all valid for its type"));
  }
  add(Reason::caps_scalar, {schema::FactKind::scalar, *arg}, rule.allowed);
  return {};
}

Status Compiler::compile(const Caps& caps) {
  if (Status bad = device(caps); !bad.ok()) return bad;
  for (const Caps::DTypes& rule : caps.dtype_rules) {
    if (Status bad = dtypes(caps, rule); !bad.ok()) return bad;
  }
  for (const Caps::Tensor& rule : caps.tensor_rules) {
    if (Status bad = tensor(rule); !bad.ok()) return bad;
  }
  for (const Caps::Scalar& rule : caps.scalar_rules) {
    if (Status bad = scalar(rule); !bad.ok()) return bad;
  }
  for (const Caps::Dim& rule : caps.dim_rules) {
    if (Status bad = dim(rule); !bad.ok()) return bad;
  }
  if (caps.no_grad) {
    add(Reason::caps_inference_only, {schema::FactKind::ambient, std::countr_zero(schema::kGrad)},
        schema::Relation::equals, 0);
  }
  const std::string missing = base::missing_features(caps.features, cpu_);
  if (!missing.empty()) {
    const bool masked = base::missing_features(missing, base::cpu_features()).empty();
    capability_.machine = Reason::caps_cpu_features;
    capability_.machine_text = "this CPU lacks " + missing;
    if (masked) capability_.machine_text = "OPMUX_CPU_MASK hides " + missing;
  }
  return {};
}

}  // namespace

Result<Capability> compile_caps(const Caps& caps, const schema::Schema& schema,
                                const base::CpuFeatures& cpu) {
  Compiler compiler(schema, cpu);
  if (Status bad = compiler.compile(caps); !bad.ok()) return bad;
  return compiler.take();
}

}  // namespace opmux::registry
