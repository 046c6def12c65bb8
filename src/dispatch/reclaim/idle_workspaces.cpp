#include "dispatch/reclaim/idle_workspaces.hpp"

#include <utility>

#include "dispatch/call/thread_block.hpp"
#include "dispatch/reclaim/reclaimer.hpp"

namespace opmux::dispatch {
namespace {

/// Frees the revoked workspaces of idle threads for which `chosen` is true. They must have been
/// revoked before the last barrier in all threads.
template <class Chosen>
void release_revoked(Chosen&& chosen) {
  for_each_thread([&](ThreadBlock& block) {
    if (chosen(block.workspace) && !has_mark(block)) block.workspace.release();
  });
}

}  // namespace

void free_idle_workspaces() {
  // Only the address matters: it differs from that of every job.
  static const char trim = 0;
  for_each_thread([](ThreadBlock& block) { block.workspace.revoke(&trim); });
  if (!synchronize_all_threads()) return;
  release_revoked([](ThreadWorkspace&) { return true; });
}

uint64_t IdleWorkspaceJob::run(uint64_t now_ns) {
  // The job is added by the first call that needs a workspace, which is not idle.
  if (!std::exchange(started_, true)) return now_ns + kEveryNs;
  const auto mine = [this](ThreadWorkspace& workspace) { return workspace.revoked_by(this); };
  bool any = false;
  for_each_thread([&](ThreadBlock& block) { any |= mine(block.workspace); });
  if (any && synchronize_all_threads()) release_revoked(mine);
  for_each_thread([this](ThreadBlock& block) { block.workspace.revoke(this); });
  return now_ns + kEveryNs;
}

}  // namespace opmux::dispatch
