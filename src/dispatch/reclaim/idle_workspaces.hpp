#pragma once

#include <cstdint>

#include "base/maintenance.hpp"

namespace opmux::dispatch {

/// Frees the workspaces of all threads that run no call. The workspace of a thread that runs one,
/// such as the calling thread on the slow path, stays.
void free_idle_workspaces();

/// The maintenance job that frees the workspaces of threads that have not used them for a minute or
/// two. Each run frees the workspaces that the run before it revoked and that no call has taken
/// since, and revokes the others; see ThreadWorkspace. A workspace in use costs one question to the
/// implementation per plan and minute, and shrinks to twice the size needed in that minute.
class IdleWorkspaceJob final : public base::Maintenance::Job {
 public:
  static constexpr uint64_t kEveryNs = 60'000'000'000;

  uint64_t run(uint64_t now_ns) override;

 private:
  bool started_ = false;
};

}  // namespace opmux::dispatch
