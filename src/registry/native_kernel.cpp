#include "registry/native_kernel.hpp"

#include <exception>

#include "base/error_sink.hpp"

namespace opmux {

Outcome CallFrame::end(Outcome outcome, std::string_view text) const {
  base::write_error(call_->error, static_cast<int32_t>(outcome), text);
  return outcome;
}

}  // namespace opmux

namespace opmux::registry {
namespace {

struct NativeFunctions {
  std::function<Outcome(CallFrame&)> run;
  std::function<std::string(const Facts&)> verify;
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
    return failed(error, "an exception that is no std::exception");
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

}  // namespace

ImplementationDraft draft_of(const Implementation& implementation, const ImplementationId& id) {
  auto functions =
      std::make_shared<NativeFunctions>(NativeFunctions{implementation.run, implementation.verify});
  ImplementationDraft draft;
  draft.op = id.op;
  draft.variant = id.variant;
  draft.flags = implementation.flags;
  draft.priority = implementation.priority;
  draft.signature = implementation.signature;
  draft.caps = implementation.caps;
  draft.kernel.user_data = functions.get();
  draft.kernel.run = implementation.run ? run_native : nullptr;
  draft.kernel.verify = implementation.verify ? verify_native : nullptr;
  if (implementation.verify_reads) {
    draft.verify_reads.emplace();
    for (const FactRef& fact : *implementation.verify_reads) {
      draft.verify_reads->push_back({static_cast<FactKind>(fact.kind), fact.name});
    }
  }
  draft.build_id = implementation.build_id;
  draft.owner = std::move(functions);
  return draft;
}

}  // namespace opmux::registry
