#include "dispatch/plan/plan_workspace.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "base/status.hpp"
#include "dispatch/call/thread_block.hpp"

namespace opmux::dispatch {
namespace {

constexpr uint64_t kNoSerial = ~uint64_t{0};           ///< no pack has this serial
constinit const std::atomic<uint64_t> kNeverMoves{0};  ///< the version of a bound plan's workspace

/// The word of an argument that workspace() may read and that the plan does not compare: the
/// alignment of a tensor, or the bits of a scalar. The plan compares device, dtype, shape and
/// strides.
uint64_t word_of(const opmux_arg& arg) {
  if (arg.tag == OPMUX_ARG_NONE) return 0;
  if (arg.tag != OPMUX_ARG_TENSOR) return static_cast<uint64_t>(arg.value.i64);
  const opmux_tensor& tensor = *arg.value.tensor;
  const uint64_t address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  return uint64_t{1} << std::countr_zero(address | 4096);
}

/// True if the frame holds the words that workspace() was shown last, and the memory in the frame
/// is still valid. The load of the version follows the store of the plan's mark (see
/// ThreadWorkspace).
bool same_words(const CachedPlan& plan) {
  const PlanWorkspace& workspace = plan.extras->workspace;
  const opmux_arg* const args = plan.args;
  const uint64_t* const words = workspace.words.get();
  uint64_t differs = workspace.pack_serial ^ plan.extras->pack_serial;
  differs |= workspace.version ^ workspace.current_version->load(std::memory_order_acquire);
  for (uint32_t i = 0; i < plan.arg_count; ++i) differs |= words[i] ^ word_of(args[i]);
  return differs == 0;
}

/// Asks workspace() and puts the memory into the frame. False if there is not enough.
[[gnu::noinline]] bool ask(CachedPlan& plan) {
  PlanWorkspace& workspace = plan.extras->workspace;
  workspace.pack_serial = plan.extras->pack_serial;
  for (uint32_t i = 0; i < plan.arg_count; ++i) workspace.words[i] = word_of(plan.args[i]);
  const registry::Kernel& kernel = plan.plan->candidate->implementation->kernel;
  plan.call.workspace = nullptr;
  plan.call.workspace_size = 0;
  const uint64_t size = kernel.workspace(kernel.user_data, &plan.call);
  plan.call.workspace_size = size;
  workspace.version = workspace.current_version->load(std::memory_order_relaxed);
  if (size == 0) return true;
  if (WorkspaceBuffer* const own = workspace.own; own != nullptr) {
    if (size > own->size) own->renew(size);
    plan.call.workspace = own->start;
  } else {
    const ThreadWorkspace::Part part = own_thread_block().workspace.take(size);
    plan.call.workspace = part.start;
    workspace.version = part.version;
  }
  return plan.call.workspace != nullptr;
}

[[gnu::cold, gnu::noinline]] int32_t no_memory(CachedPlan& plan) {
  plan.extras->workspace.pack_serial = kNoSerial;  // So that the next run asks again.
  // Without std::string, which allocates.
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), "no memory for %llu bytes of workspace",
                                 static_cast<unsigned long long>(plan.call.workspace_size));
  base::write_error(plan.call.error, OPMUX_RESOURCE,
                    {text.data(), static_cast<size_t>(std::max(size, 0))});
  return OPMUX_RESOURCE;
}

/// The run function of a plan with a workspace: renews the workspace if needed, then runs the
/// kernel. `self` is the plan.
int32_t run_with_workspace(void* self, const opmux_call* call) {
  CachedPlan& plan = *static_cast<CachedPlan*>(self);
  if (!same_words(plan) && !ask(plan)) [[unlikely]]
    return no_memory(plan);
  const registry::RunEntry& kernel = plan.extras->workspace.kernel;
  return kernel.run(kernel.user_data, call);
}

}  // namespace

bool give_workspace(CachedPlan& plan, WorkspaceBuffer* own) {
  plan.hold_exactly();
  PlanWorkspace& workspace = plan.with_extras().workspace;
  workspace.words = std::make_unique<uint64_t[]>(plan.arg_count);
  workspace.own = own;
  workspace.current_version =
      own != nullptr ? &kNeverMoves : &own_thread_block().workspace.version();
  workspace.kernel = {plan.run, plan.user_data};
  plan.run = run_with_workspace;
  plan.user_data = &plan;
  return ask(plan);
}

}  // namespace opmux::dispatch
