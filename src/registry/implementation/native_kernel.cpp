#include "registry/implementation/native_kernel.hpp"

#include <exception>

#include "base/status.hpp"

namespace opmux {

Outcome CallFrame::end(Outcome outcome, std::string_view text) const {
  base::write_error(call_->error, static_cast<int32_t>(outcome), text);
  return outcome;
}

}  // namespace opmux

namespace opmux::registry {
namespace {

struct NativeFunctions {
  decltype(Implementation::run) run;
  decltype(Implementation::verify) verify;
  KernelFunctions kernel;
};

int32_t failed(opmux_error* error, std::string_view text) {
  base::write_error(error, OPMUX_FAILED, text);
  return OPMUX_FAILED;
}

template <class Body>
int32_t without_exceptions(opmux_error* error, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& thrown) {
    return failed(error, thrown.what());
  } catch (...) {
    return failed(error, "an exception that is not a std::exception");
  }
}

int32_t run_native(void* user_data, const opmux_call* call) {
  return without_exceptions(call->error, [&] {
    CallFrame frame(*call);
    return static_cast<int32_t>(static_cast<NativeFunctions*>(user_data)->run(frame));
  });
}

int32_t verify_native(void* user_data, const opmux_facts* facts, opmux_error* why) {
  return without_exceptions(why, [&]() -> int32_t {
    const std::string refusal = static_cast<NativeFunctions*>(user_data)->verify(Facts(*facts));
    if (refusal.empty()) return OPMUX_OK;
    base::write_error(why, OPMUX_DECLINED, refusal);
    return OPMUX_DECLINED;
  });
}

/// All functions of an implementation share one user_data. If a C++ verifier is combined with C
/// functions, user_data is the NativeFunctions that holds both, and these wrappers forward to the C
/// functions with their user_data.
int32_t run_beside(void* user_data, const opmux_call* call) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  return kernel.run(kernel.user_data, call);
}
int32_t plan_beside(void* user_data, const opmux_call* call, void** prepared) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  return kernel.plan(kernel.user_data, call, prepared);
}
void plan_free_beside(void* user_data, void* prepared) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  kernel.plan_free(kernel.user_data, prepared);
}
uint64_t workspace_beside(void* user_data, const opmux_call* call) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  return kernel.workspace(kernel.user_data, call);
}
int32_t create_beside(void* user_data, const opmux_arg* options, uint32_t count, void** instance,
                      opmux_error* error) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  return kernel.create(kernel.user_data, options, count, instance, error);
}
int32_t load_beside(void* user_data, void* instance, const opmux_arg* params, uint32_t count,
                    opmux_error* error) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  return kernel.load(kernel.user_data, instance, params, count, error);
}
void destroy_beside(void* user_data, void* instance) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  kernel.destroy(kernel.user_data, instance);
}
int32_t describe_beside(void* user_data, void* instance, const opmux_node_sink* sink) {
  const KernelFunctions& kernel = static_cast<NativeFunctions*>(user_data)->kernel;
  return kernel.describe(kernel.user_data, instance, sink);
}

/// Whether a function is set. Without `run` they are passed on too, and then refused.
bool has_functions(const KernelFunctions& kernel) {
  return kernel.run != nullptr || kernel.plan != nullptr || kernel.plan_free != nullptr ||
         kernel.workspace != nullptr || kernel.create != nullptr || kernel.load != nullptr ||
         kernel.destroy != nullptr || kernel.describe != nullptr;
}

void use_functions(const KernelFunctions& from, Kernel& to) {
  if (to.verify == nullptr) return take_functions(from, to);
  to.run = from.run != nullptr ? run_beside : nullptr;
  to.plan = from.plan != nullptr ? plan_beside : nullptr;
  to.plan_free = from.plan_free != nullptr ? plan_free_beside : nullptr;
  to.workspace = from.workspace != nullptr ? workspace_beside : nullptr;
  to.create = from.create != nullptr ? create_beside : nullptr;
  to.load = from.load != nullptr ? load_beside : nullptr;
  to.destroy = from.destroy != nullptr ? destroy_beside : nullptr;
  to.describe = from.describe != nullptr ? describe_beside : nullptr;
}

std::optional<std::vector<schema::FactName>> names_of(
    const std::optional<std::vector<FactRef>>& facts) {
  if (!facts) return std::nullopt;
  std::vector<schema::FactName> names;
  for (const FactRef& fact : *facts)
    names.push_back({static_cast<schema::FactKind>(fact.kind), fact.name});
  return names;
}

}  // namespace

ImplementationDraft draft_of(const Implementation& implementation, const ImplementationId& id) {
  auto functions = std::make_shared<NativeFunctions>(
      NativeFunctions{implementation.run, implementation.verify, implementation.kernel});
  ImplementationDraft draft;
  draft.op = id.op;
  draft.variant = id.variant;
  draft.flags = implementation.flags;
  draft.priority = implementation.priority;
  draft.signature = implementation.signature;
  draft.caps = implementation.caps;
  draft.hints = implementation.hints;
  draft.kernel.user_data = functions.get();
  draft.kernel.run = implementation.run ? run_native : nullptr;
  draft.kernel.verify = implementation.verify ? verify_native : nullptr;
  if (has_functions(implementation.kernel)) use_functions(implementation.kernel, draft.kernel);
  draft.verify_reads = names_of(implementation.verify_reads);
  draft.plan_reads = names_of(implementation.plan_reads);
  draft.create_reads = names_of(implementation.create_reads);
  if (implementation.available) draft.available = implementation.available;
  draft.build_id = implementation.build_id;
  draft.owner = std::move(functions);
  return draft;
}

}  // namespace opmux::registry
