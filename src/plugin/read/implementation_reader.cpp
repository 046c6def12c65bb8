#include "plugin/read/implementation_reader.hpp"

#include "plugin/read/bounded_read.hpp"

namespace opmux::plugin {
namespace {

Status read_into(opmux_str text, std::string_view what, std::string& into) {
  Result<std::string> read = read_text(text, what);
  if (!read) return read.error();
  into = *std::move(read);
  return {};
}

Status read_dtypes(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.dtypes, from.dtype_count, from.dtype_stride,
                                OPMUX_SIZE_TO(opmux_dtype_rule, dtypes), "dtype rules");
  if (!rules) return rules.error();
  for (const opmux_dtype_rule& rule : *rules) {
    Caps::DTypes& added = into.dtype_rules.emplace_back();
    if (Status bad = read_into(rule.arg, "argument of a dtype rule", added.arg); !bad.ok()) {
      return bad;
    }
    const auto dtypes = read_values(rule.dtypes, rule.count, "dtypes of a rule");
    if (!dtypes) return dtypes.error();
    for (const opmux_dtype& d : *dtypes) added.allowed.push_back({d.code, d.bits, d.lanes});
  }
  return {};
}

Status read_dims(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.dims, from.dim_count, from.dim_stride,
                                OPMUX_SIZE_TO(opmux_dim_rule, value), "dimension rules");
  if (!rules) return rules.error();
  for (const opmux_dim_rule& rule : *rules) {
    Caps::Dim& added = into.dim_rules.emplace_back(Caps::Dim{"", rule.relation, rule.value});
    if (Status bad = read_into(rule.dim, "name of a dimension", added.dim); !bad.ok()) return bad;
  }
  return {};
}

Status read_tensors(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.tensors, from.tensor_count, from.tensor_stride,
                                OPMUX_SIZE_TO(opmux_tensor_rule, layout), "tensor rules");
  if (!rules) return rules.error();
  for (const opmux_tensor_rule& rule : *rules) {
    if (Status bad = check_reserved(rule.reserved, "a tensor rule"); !bad.ok()) return bad;
    Caps::Tensor& added = into.tensor_rules.emplace_back();
    added.flags = rule.flags;
    added.min_rank = rule.min_rank;
    added.max_rank = rule.max_rank;
    added.alignment = rule.alignment;
    if (Status bad = read_into(rule.arg, "argument of a tensor rule", added.arg); !bad.ok()) {
      return bad;
    }
    if (Status bad = read_into(rule.layout, "layout", added.layout); !bad.ok()) return bad;
  }
  return {};
}

Status read_scalars(const opmux_caps& from, Caps& into) {
  const auto rules = read_array(from.scalars, from.scalar_count, from.scalar_stride,
                                OPMUX_SIZE_TO(opmux_scalar_rule, values), "scalar rules");
  if (!rules) return rules.error();
  for (const opmux_scalar_rule& rule : *rules) {
    Caps::Scalar& added = into.scalar_rules.emplace_back();
    if (Status bad = read_into(rule.arg, "argument of a scalar rule", added.arg); !bad.ok()) {
      return bad;
    }
    auto values = read_values(rule.values, rule.count, "values of a scalar rule");
    if (!values) return values.error();
    added.allowed = *std::move(values);
  }
  return {};
}

Status read_machine(const opmux_caps& from, Caps& into) {
  if (Status bad = check_reserved(from.reserved, "capabilities"); !bad.ok()) return bad;
  if ((from.flags & ~OPMUX_CAPS_INFERENCE_ONLY) != 0) {
    return malformed("flags",
                     base::concat("capability flags ", from.flags, " are not all defined"));
  }
  into.no_grad = (from.flags & OPMUX_CAPS_INFERENCE_ONLY) != 0;
  into.device_type = from.device_type;
  if (Status bad = read_into(from.cpu_features, "cpu_features", into.features); !bad.ok()) {
    return bad;
  }
  if (Status bad = read_into(from.min_arch, "min_arch", into.min_arch); !bad.ok()) return bad;
  return read_into(from.max_arch, "max_arch", into.max_arch);
}

}  // namespace

Result<Caps> read_caps(const opmux_caps* from) {
  Caps into;
  into.device_type = 0;
  if (from == nullptr) return into;
  opmux_caps caps{};
  Status bad = read_struct(from, OPMUX_SIZE_TO(opmux_caps, scalar_stride), kLargestStride,
                           "capabilities", caps);
  for (const auto read : {read_machine, read_dtypes, read_dims, read_tensors, read_scalars}) {
    if (bad.ok()) bad = read(caps, into);
  }
  if (!bad.ok()) return bad;
  return into;
}

namespace {

using registry::ImplementationDraft;
using schema::FactKind;
using schema::FactName;

using Reads = std::optional<std::vector<FactName>>;

/// A null list is reported as absent; an empty list declares that no fact is read.
Result<Reads> read_facts(const opmux_fact* data, uint32_t count, uint32_t stride,
                         std::string_view what) {
  if (data == nullptr && count == 0) return Reads();
  const auto facts = read_array(data, count, stride, OPMUX_SIZE_TO(opmux_fact, name), what);
  if (!facts) return facts.error();
  Reads reads(std::in_place);
  for (const opmux_fact& fact : *facts) {
    if (fact.kind < OPMUX_FACT_DTYPE || fact.kind > OPMUX_FACT_TAG) {
      return malformed("fact", base::concat(what, ": kind ", fact.kind, " is not defined"));
    }
    Result<std::string> name = read_text(fact.name, what);
    if (!name) return name.error();
    reads->push_back({static_cast<FactKind>(fact.kind), *std::move(name)});
  }
  return reads;
}

Status check_functions(const opmux_impl& from) {
  if (from.run == nullptr) return malformed("null_function", "it has no run function");
  const bool stateful = from.create != nullptr;
  const bool parts = from.load != nullptr || from.destroy != nullptr || from.describe != nullptr;
  if (stateful && from.destroy == nullptr) {
    return malformed("null_function", "it has create but not destroy");
  }
  if (!stateful && parts) {
    return malformed("null_function", "it has load, destroy or describe but not create");
  }
  if (from.plan == nullptr && from.plan_free != nullptr) {
    return malformed("null_function", "it has plan_free but not plan");
  }
  return {};
}

Status read_texts(const opmux_impl& from, ImplementationDraft& into) {
  Result<std::string> op = read_text(from.op, "operator of an implementation");
  if (!op) return op.error();
  Result<std::string> variant = read_text(from.variant, "variant of an implementation");
  if (!variant) return variant.error();
  Result<std::string> signature = read_text(from.signature, "signature", Lines::many);
  if (!signature) return signature.error();
  into.op = *std::move(op);
  into.variant = *std::move(variant);
  into.signature = *std::move(signature);
  return {};
}

Status read_all_facts(const opmux_impl& from, ImplementationDraft& into) {
  Result<Reads> verify = read_facts(from.verify_reads, from.verify_reads_count,
                                    from.verify_reads_stride, "verify_reads");
  if (!verify) return verify.error();
  Result<Reads> plan =
      read_facts(from.plan_reads, from.plan_reads_count, from.plan_reads_stride, "plan_reads");
  if (!plan) return plan.error();
  Result<Reads> create = read_facts(from.create_reads, from.create_reads_count,
                                    from.create_reads_stride, "create_reads");
  if (!create) return create.error();
  into.verify_reads = *std::move(verify);
  into.plan_reads = *std::move(plan);
  into.create_reads = *std::move(create);
  return {};
}

Status read_hints(const opmux_impl& from, ImplementationDraft& into) {
  const auto hints = read_array(from.hints, from.hint_count, from.hint_stride,
                                OPMUX_SIZE_TO(opmux_hint, most), "hints");
  if (!hints) return hints.error();
  for (const opmux_hint& hint : *hints) {
    Hint& added = into.hints.emplace_back(Hint{"", hint.least, hint.most, hint.priority});
    if (Status bad = read_into(hint.dim, "dimension of a hint", added.dim); !bad.ok()) return bad;
  }
  return {};
}

}  // namespace

Result<ImplementationDraft> read_implementation(const opmux_impl& from, const std::string& build_id,
                                                const std::shared_ptr<void>& owner) {
  ImplementationDraft draft;
  if (Status bad = check_reserved(from.reserved, "an implementation"); !bad.ok()) return bad;
  if (Status bad = read_texts(from, draft); !bad.ok()) return bad;
  if (Status bad = check_functions(from); !bad.ok()) return bad;
  if (Status bad = read_all_facts(from, draft); !bad.ok()) return bad;
  if (Status bad = read_hints(from, draft); !bad.ok()) return bad;
  Result<Caps> caps = read_caps(from.caps);
  if (!caps) return caps.error();
  draft.caps = *std::move(caps);
  draft.flags = from.flags;
  draft.priority = from.priority;
  draft.prefix_hash = from.prefix_hash;
  take_functions(from, draft.kernel);
  draft.build_id = build_id;
  draft.owner = owner;
  return draft;
}

}  // namespace opmux::plugin
