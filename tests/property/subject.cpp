#include "subject.hpp"

#include <bit>
#include <stdexcept>

#include "dispatch/call/argument_words.hpp"
#include "dispatch/call/call.hpp"
#include "runtime/core.hpp"

namespace opmux::property {
namespace {

std::vector<std::string> ran_now;

std::vector<std::pair<std::string, std::string>> variables_of(const Policy& policy) {
  std::vector<std::pair<std::string, std::string>> variables{
      {"OPMUX_PREFER", joined(policy.prefer, ",")},
      {"OPMUX_ALLOW_VENDORS", joined(policy.allow_vendors, ",")},
      {"OPMUX_DENY_VENDORS", joined(policy.deny_vendors, ",")}};
  if (policy.strict) variables.emplace_back("OPMUX_STRICT", *policy.strict ? "1" : "0");
  for (const auto& [op, order] : policy.per_op)
    variables.emplace_back("OPMUX_PER_OP", op + "=" + joined(order, "|"));
  return variables;
}

/// Arguments in the ABI's form; they point into the call.
struct Packed {
  explicit Packed(const Call& call) {
    for (const Value& value : call.given) {
      site.push(value.tag);
      ArgValue& to = values[count++];
      if (value.tag == ArgTag::none || value.tag == ArgTag::tensor) {
        to.tensor = &value.tensor;
      } else if (value.tag == ArgTag::floating) {
        to.f64 = value.real;
      } else if (value.tag == ArgTag::string) {
        lists.push_back({value.text.data(), value.text.size()});
        to.list = &lists.back();
      } else if (value.tag == ArgTag::integer_list) {
        lists.push_back({value.list.data(), value.list.size()});
        to.list = &lists.back();
      } else {
        to.i64 = value.number;
      }
    }
  }
  CallSite site;
  size_t count = 0;
  ArgValue values[OPMUX_MAX_ARGS] = {};
  std::deque<opmux_list> lists;
};

/// The number of leading tensors, or -1 if the arguments cannot be passed in registers; a compiler
/// determines this for a call site.
int leading_tensors(const Packed& packed) {
  int tensors = 0;
  for (uint32_t i = 0; i < packed.count; ++i) {
    const ArgTag tag = packed.site.tag(i);
    if (tag == ArgTag::none || tag >= ArgTag::string) return -1;
    if (tag != ArgTag::tensor) continue;
    if (tensors++ != static_cast<int>(i)) return -1;
  }
  return tensors >= 1 && packed.count <= 4 ? tensors : -1;
}

/// The library's entry points that a compiled call with these arguments would use.
struct OfHandle {
  dispatch::OperatorSlot& slot;
  template <int kTensors, int kScalars, class... Words>
  Status::Detail* in_registers(Words... words) const {
    return dispatch::call_words<kTensors, kScalars>(slot, words...);
  }
  Status::Detail* in_memory(const Packed& packed) const {
    return dispatch::call(slot, packed.site, packed.values);
  }
};
struct OfPlan {
  dispatch::BoundPlan& plan;
  template <int kTensors, int kScalars, class... Words>
  Status::Detail* in_registers(Words... words) const {
    return detail::call_plan_words<kTensors, kScalars>(plan, words...);
  }
  Status::Detail* in_memory(const Packed& packed) const {
    return plan.call(packed.site, packed.values);
  }
};

template <class Entry>
Status::Detail* call_as_compiled(const Entry& entry, const Packed& packed) {
  const auto word = [&](size_t i) { return std::bit_cast<uint64_t>(packed.values[i]); };
  const int tensors = leading_tensors(packed);
#define OPMUX_ENTRY(first, rest)                                                                   \
  if (tensors == (first) && packed.count == (first) + (rest)) {                                    \
    return entry.template in_registers<first, rest>(packed.site.word(), word(0), word(1), word(2), \
                                                    word(3));                                      \
  }
  OPMUX_FOR_ARGUMENT_WORDS(OPMUX_ENTRY)
#undef OPMUX_ENTRY
  return entry.in_memory(packed);
}

void require(const Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.to_string());
}

std::function<std::string(const Facts&)> function_of(const Verifier& verifier) {
  return [verifier](const Facts& facts) -> std::string {
    const auto value = facts.get(verifier.asks.kind, verifier.asks.name);
    if (!value || *value % verifier.modulo != verifier.rest) return "";
    if (verifier.breaks) throw std::runtime_error("broken");
    return "it leaves the rest it must not leave";
  };
}

}  // namespace

int Subject::wrongly_prepared = 0;

/// The parts of a call on which a prepared state may depend, as text.
std::string Subject::prepared_for(const Kernel& kernel, const opmux_call& call) {
  std::string text;
  const CallFrame frame(call);
  for (size_t i = 0; i < frame.size(); ++i) {
    if (!frame.has(i)) {
      if (!kernel.plan_reads) text += " none";
      continue;
    }
    const auto& arg = *reinterpret_cast<const opmux_arg*>(reinterpret_cast<const char*>(call.args) +
                                                          i * call.arg_stride);
    if (arg.tag != OPMUX_ARG_TENSOR) {
      if (arg.tag != OPMUX_ARG_STR && arg.tag != OPMUX_ARG_I64_LIST && !kernel.plan_reads)
        text += " " + std::to_string(arg.value.i64);
      continue;
    }
    const TensorView tensor = frame.tensor(i);
    const auto reads = [&](uint32_t kind) {
      if (!kernel.plan_reads) return true;
      for (const FactRef& fact : *kernel.plan_reads) {
        if (fact.kind == kind && i < kernel.arg_names.size() && fact.name == kernel.arg_names[i])
          return true;
      }
      return false;
    };
    if (reads(OPMUX_FACT_DTYPE)) text += " dtype " + name_of(tensor.dtype());
    if (reads(OPMUX_FACT_RANK)) text += " rank " + std::to_string(tensor.rank());
    if (reads(OPMUX_FACT_CONTIGUOUS)) text += tensor.contiguous() ? " dense" : " gaps";
    if (kernel.plan_reads) continue;
    for (const int64_t size : tensor.shape()) text += " " + std::to_string(size);
    for (const int64_t stride : tensor.strides()) text += "/" + std::to_string(stride);
  }
  return text;
}

int32_t Subject::run(void* user_data, const opmux_call* call) {
  const auto& kernel = *static_cast<const Kernel*>(user_data);
  ran_now.push_back(kernel.id);
  if (call->prepared == nullptr) return OPMUX_OK;
  const auto& prepared = *static_cast<const std::string*>(call->prepared);
  if (prepared != prepared_for(kernel, *call)) ++wrongly_prepared;
  return OPMUX_OK;
}

int32_t Subject::plan(void* user_data, const opmux_call* call, void** prepared) {
  *prepared = new std::string(prepared_for(*static_cast<const Kernel*>(user_data), *call));
  return OPMUX_OK;
}

void Subject::plan_free(void*, void* prepared) { delete static_cast<std::string*>(prepared); }

Subject::Subject(const World& world) {
  Options options;
  options.backends = false;
  options.environment = variables_of(world.environment);
  auto runtime = Runtime::create(std::move(options));
  require(runtime.error(), "create");
  runtime_.emplace(std::move(*runtime));
  require(runtime_->define("keep(out Tensor y[*])"), "define");
  require(runtime_->define("other(out Tensor y[*])"), "define");  // orders name it
  require(runtime_->define(text_of(world.schema, world.schema.args.size())), "define");
  for (const Backend& backend : world.backends) {
    if (!backend.available) {
      registry::Batch batch;
      batch.backend.name = backend.name;
      batch.backend.kind = backend.kind;
      batch.backend.vendor = backend.vendor;
      batch.backend.probe = [] { return std::optional<std::string>("not on this machine"); };
      (void)runtime_->core().registry().add(batch, false);
    }
    // A backend exists only while it has an implementation; this one keeps it alive.
    auto keeper = runtime_->implement({.id = "keep/" + backend.name + ".keeper",
                                       .kind = backend.kind,
                                       .vendor = backend.vendor,
                                       .run = [](CallFrame&) { return opmux::Outcome::ok; }});
    require(keeper.error(), "keeper");
    keepers_.push_back(std::move(*keeper));
    enable(backend);
  }
  registrations_.resize(world.candidates.size());
  for (size_t i = 0; i < world.candidates.size(); ++i) put(world, i);
  op_.emplace(runtime_->op(world.schema.name).value());
}

void Subject::enable(const Backend& backend) {
  require(runtime_->plugins().enable_backend(backend.name, backend.enabled), "enable");
}

void Subject::put(const World& world, size_t at) {
  const Candidate& candidate = world.candidates[at];
  if (!candidate.registered) {
    registrations_[at] = {};
    return;
  }
  Kernel kernel{candidate.id, candidate.plan_reads, {}};
  for (const Arg& arg : world.schema.args) kernel.arg_names.push_back(arg.name);
  kernels_.push_back(std::move(kernel));
  const Backend& backend = world.backends[candidate.backend];
  Implementation implementation{.id = candidate.id,
                                .kind = backend.kind,
                                .vendor = backend.vendor,
                                .priority = candidate.priority,
                                .hints = candidate.hints,
                                .caps = candidate.caps};
  implementation.kernel.user_data = &kernels_.back();
  implementation.kernel.run = run;
  if (candidate.prepares) {
    implementation.kernel.plan = plan;
    implementation.kernel.plan_free = plan_free;
    implementation.plan_reads = candidate.plan_reads;
  }
  if (candidate.verifier) {
    implementation.verify = function_of(*candidate.verifier);
    implementation.verify_reads = candidate.verifier->reads;
  }
  implementation.flags = candidate.flags;
  if (candidate.known_args < world.schema.args.size())
    implementation.signature = text_of(world.schema, candidate.known_args);
  auto registration = runtime_->implement(implementation);
  require(registration.error(), candidate.id);
  registrations_[at] = std::move(*registration);
}

void Subject::push_scope(const Policy& policy) {
  scopes_.push_back(std::make_unique<PolicyScope>(*runtime_, policy));
  require(scopes_.back()->status(), "scope");
}

template <class Body>
Subject::Outcome Subject::recorded(Body&& body) {
  ran_now.clear();
  Status status = body();
  return {std::move(status), std::move(ran_now)};
}

Subject::Outcome Subject::call(const Call& call) {
  const Packed packed(call);
  const AmbientScope ambient(call.ambient);
  return recorded([&] { return Status(call_as_compiled(OfHandle{op_->slot()}, packed)); });
}

Subject::Outcome Subject::call_with(const Call& call, std::string& reported) {
  const Packed packed(call);
  const AmbientScope ambient(call.ambient);
  CallReport report;
  const CallOptions options{.tag = {call.tag}};
  Outcome outcome = recorded([&] {
    return Status(detail::call_with(op_->slot(), packed.site, packed.values, options, &report));
  });
  reported = report.implementation;
  return outcome;
}

Explanation Subject::explain(const Call& call) {
  const Packed packed(call);
  const AmbientScope ambient(call.ambient);
  return detail::explain(op_->slot(), packed.site, packed.values);
}

Result<Subject::PlanPtr> Subject::bind(const Call& call) {
  const Packed packed(call);
  const AmbientScope ambient(call.ambient);
  return dispatch::BoundPlan::bind(op_->slot(), packed.site, packed.values, {});
}

Subject::Outcome Subject::call_plan(dispatch::BoundPlan& plan, const Call& call) {
  const Packed packed(call);
  return recorded([&] { return Status(call_as_compiled(OfPlan{plan}, packed)); });
}

}  // namespace opmux::property
