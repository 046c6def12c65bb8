#include "plugin/implementation_reader.hpp"

#include "plugin/bounded_read.hpp"
#include "plugin/caps_reader.hpp"

namespace opmux::plugin {
namespace {

using registry::FactKind;
using registry::FactName;
using registry::ImplementationDraft;

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
  into.verify_reads = *std::move(verify);
  into.plan_reads = *std::move(plan);
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
