#include "registry/implementation/draft_check.hpp"

#include <algorithm>
#include <utility>

#include "base/system/thread_state.hpp"
#include "base/text.hpp"
#include "registry/implementation/implementation_id.hpp"
#include "schema/schema.hpp"

namespace opmux::registry {
namespace {

constexpr uint32_t kBackendFlags = OPMUX_BACKEND_DEFAULT_OFF | OPMUX_BACKEND_FORK_REINIT |
                                   OPMUX_BACKEND_FORK_LOST | OPMUX_BACKEND_STREAM;
constexpr uint32_t kImplementationFlags = OPMUX_IMPL_SERIAL | OPMUX_IMPL_ATOMIC_OUTPUTS |
                                          OPMUX_IMPL_DETERMINISTIC | OPMUX_IMPL_BATCH_INVARIANT |
                                          OPMUX_IMPL_CAPTURE_SAFE | OPMUX_IMPL_VERIFY_RECORDED;

Status refused(std::string reason, std::string message) {
  return {Code::invalid_argument, std::move(reason), std::move(message)};
}

Status check_flags(uint32_t flags, uint32_t defined) {
  if ((flags & ~defined) == 0) return {};
  return refused("registry.flags", base::concat("flags ", flags, " are not all defined"));
}

Status check_priority(int priority) {
  if (priority <= kHighestPriority) return {};
  return refused("registry.priority",
                 base::concat("priority ", priority,
                              " is above 1000; a negative number means the default of the kind"));
}

/// The number of arguments of `schema` that the implementation was built for.
Result<size_t> matched_arguments(const ImplementationDraft& draft, const schema::Schema& schema) {
  if (!draft.signature.empty()) {
    const Result<schema::Schema> built_for = schema::parse_schema(draft.signature);
    if (!built_for) {
      return refused("schema.signature", base::concat("the signature that it was built for: ",
                                                      built_for.error().message()));
    }
    const Status same = schema::check_evolution(*built_for, schema);
    if (!same.ok()) return refused("schema.signature", std::string(same.message()));
    return built_for->args.size();
  }
  size_t count = schema.args.size();
  if (draft.prefix_hash == 0) return count;
  for (;; --count) {
    if (schema.prefix_hash(count) == draft.prefix_hash) return count;
    if (count == 0 || !schema.args[count - 1].omittable()) break;
  }
  return refused("schema.signature",
                 base::concat("it was built for arguments that differ from ", schema.canonical(),
                              "; register it with the signature's text to see the difference"));
}

std::vector<schema::Fact> default_verify_reads(const schema::Schema& schema, size_t arg_count) {
  std::vector<schema::Fact> facts;
  for (size_t i = 0; i < arg_count; ++i) {
    for (const schema::FactKind kind : {schema::FactKind::scalar, schema::FactKind::dtype,
                                        schema::FactKind::rank, schema::FactKind::device}) {
      const auto fact = schema::resolve_fact(schema, kind, schema.args[i].name);
      if (fact) facts.push_back(*fact);
    }
  }
  return facts;
}

Result<std::vector<schema::Fact>> resolve_reads(std::string_view list,
                                                const std::vector<schema::FactName>& names,
                                                const schema::Schema& schema) {
  std::vector<schema::Fact> facts;
  for (const schema::FactName& name : names) {
    const std::optional<schema::Fact> fact = schema::resolve_fact(schema, name.kind, name.name);
    if (!fact) {
      return refused(
          "registry.reads",
          base::concat(list, " lists a fact of kind ", static_cast<int>(name.kind), " about '",
                       name.name, "', which ", schema.name, " does not have"));
    }
    facts.push_back(*fact);
  }
  return facts;
}

Status resolve_all_reads(const ImplementationDraft& draft, const schema::Schema& schema,
                         ImplementationRecord& record) {
  const bool recorded = record.has(OPMUX_IMPL_VERIFY_RECORDED);
  if (recorded && draft.kernel.verify != nullptr) {
    record.recorded = std::make_unique<RecordedReads>();
  }
  if (draft.verify_reads) {
    Result<std::vector<schema::Fact>> reads =
        resolve_reads("verify_reads", *draft.verify_reads, schema);
    if (!reads) return reads.error();
    record.verify_reads = *std::move(reads);
  } else if (draft.kernel.verify != nullptr && !recorded) {
    record.verify_reads = default_verify_reads(schema, record.arg_count);
  }
  if (draft.plan_reads) {
    Result<std::vector<schema::Fact>> reads =
        resolve_reads("plan_reads", *draft.plan_reads, schema);
    if (!reads) return reads.error();
    record.plan_reads = *std::move(reads);
  }
  if (draft.create_reads) {
    Result<std::vector<schema::Fact>> reads =
        resolve_reads("create_reads", *draft.create_reads, schema);
    if (!reads) return reads.error();
    record.create_args = 0;
    for (const schema::Fact& fact : *reads) {
      if (fact.kind != schema::FactKind::scalar) {
        return refused("registry.reads",
                       base::concat("create_reads lists ", schema::describe(schema, fact),
                                    ", but create() gets only scalars"));
      }
      record.create_args |= uint32_t{1} << fact.index;
    }
  }
  return {};
}

Status check_alone(const ImplementationDraft& draft) {
  if (!schema::valid_name(draft.variant)) {
    return refused("registry.name",
                   base::concat("'", draft.variant, "' is not a name for a variant: ",
                                "[a-z][a-z0-9_]* of at most 64 bytes"));
  }
  if (draft.kernel.run == nullptr) return refused("registry.no_run", "it has no run function");
  if (Status bad = check_priority(draft.priority); !bad.ok()) return bad;
  return check_flags(draft.flags, kImplementationFlags);
}

Status check_instances(const Kernel& kernel) {
  const bool others =
      kernel.load != nullptr || kernel.destroy != nullptr || kernel.describe != nullptr;
  if (kernel.create != nullptr || !others) return {};
  return refused("registry.create", "it has load, destroy or describe but not create");
}

/// With a `const` argument, create() packs it, and run() must also work without an instance,
/// because a call may pass a plain tensor. Without one, state is all that create() can be for.
bool needs_instance(const Kernel& kernel, const schema::Schema& schema, size_t arg_count) {
  const auto last = schema.args.begin() + static_cast<ptrdiff_t>(arg_count);
  return kernel.create != nullptr &&
         std::none_of(schema.args.begin(), last, [](const auto& arg) { return arg.constant; });
}

Result<Capability> compile_caps_for(const ImplementationDraft& draft, const schema::Schema& schema,
                                    const Backend& backend, const base::CpuFeatures& cpu) {
  // Without a device type, functions of a language binding take tensors of any device.
  if (draft.caps.device_type != 0 || schema.opaque) return compile_caps(draft.caps, schema, cpu);
  Caps caps = draft.caps;
  caps.device_type = backend.device_type();
  return compile_caps(caps, schema, cpu);
}

/// Records every call, because a stream reports errors without saying which call caused them.
int32_t run_on_stream(void* record, const opmux_call* call) {
  const auto& implementation = *static_cast<const ImplementationRecord*>(record);
  implementation.backend->history()->note({call->device.type, call->device.id}, call->stream,
                                          implementation.number);
  return implementation.kernel.run(implementation.kernel.user_data, call);
}

RunEntry entry_of(ImplementationRecord& record) {
  if (record.backend->history() == nullptr) return {record.kernel.run, record.kernel.user_data};
  return {run_on_stream, &record};
}

int32_t run_restoring(void* record, const opmux_call* call) {
  const auto& implementation = *static_cast<const ImplementationRecord*>(record);
  const base::StateCheck before(implementation.left.load(std::memory_order_relaxed));
  const int32_t outcome = implementation.entry.run(implementation.entry.user_data, call);
  before.restore();
  return outcome;
}

}  // namespace

Status check_backend(const BackendDraft& draft) {
  if (!valid_provider(draft.name, draft.kind)) {
    const bool reserved = schema::valid_name(draft.name);
    return refused("registry.name",
                   base::concat("'", draft.name, "' cannot be the name of a backend of kind ",
                                name_of(draft.kind), ": ",
                                reserved ? "policies reserve this word"
                                         : "names are [a-z][a-z0-9_]* of at most 64 bytes"));
  }
  if (draft.vendor.empty() ? draft.kind == Kind::vendor : !schema::valid_name(draft.vendor)) {
    return refused(
        "registry.vendor",
        base::concat("backend ", draft.name, " of kind ", name_of(draft.kind),
                     draft.vendor.empty() ? " has no vendor" : " has the vendor '", draft.vendor,
                     draft.vendor.empty() ? "" : "', which is not a valid name"));
  }
  if (Status bad = check_priority(draft.priority); !bad.ok()) return bad;
  return check_flags(draft.flags, kBackendFlags);
}

std::string id_of(const ImplementationDraft& draft, std::string_view backend) {
  return base::concat(draft.op, "/", backend, ".", draft.variant);
}

Result<std::shared_ptr<ImplementationRecord>> make_record(const ImplementationDraft& draft,
                                                          const schema::Schema& schema,
                                                          std::shared_ptr<Backend> backend,
                                                          const base::CpuFeatures& cpu) {
  if (Status bad = check_alone(draft); !bad.ok()) return bad;
  const Result<size_t> arg_count = matched_arguments(draft, schema);
  if (!arg_count) return arg_count.error();
  if (Status bad = check_instances(draft.kernel); !bad.ok()) return bad;
  Result<Capability> capability = compile_caps_for(draft, schema, *backend, cpu);
  if (!capability) return capability.error();
  Result<std::vector<CompiledHint>> hints = compile_hints(draft.hints, schema);
  if (!hints) return hints.error();

  auto record = std::make_shared<ImplementationRecord>();
  record->id = id_of(draft, backend->name());
  record->op = draft.op;
  record->variant = draft.variant;
  record->vendor = backend->vendor();
  record->build_id = draft.build_id;
  record->kind = backend->kind();
  record->priority = draft.priority < 0 ? priority_of(backend->kind()) : draft.priority;
  record->flags = draft.flags;
  record->arg_count = *arg_count;
  record->kernel = draft.kernel;
  record->needs_instance = needs_instance(draft.kernel, schema, *arg_count);
  record->capability = *std::move(capability);
  record->hints = *std::move(hints);
  record->backend = std::move(backend);
  record->owner = draft.owner;
  if (draft.available) record->probe = std::make_unique<ImplementationProbe>(draft.available);
  record->entry = entry_of(*record);
  record->restoring = {run_restoring, record.get()};
  if (Status bad = resolve_all_reads(draft, schema, *record); !bad.ok()) return bad;
  return record;
}

}  // namespace opmux::registry
