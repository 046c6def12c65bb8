#include "plugin/probe/undumpable.hpp"

#include <sys/prctl.h>

#include <mutex>

#include "base/system/process.hpp"

namespace opmux::plugin {
namespace {

constexpr int kDumpable = 1;

/// The Undumpable objects of this process. Atomic, because a forked child reads it without a lock.
struct Holders {
  base::ForkMutex lock;
  std::atomic<int> count{0};
  std::atomic<bool> changed{false};  ///< this file made the process undumpable
};
constinit Holders holders;

void restore_dumpable() {
  if (holders.changed.exchange(false)) prctl(PR_SET_DUMPABLE, kDumpable, 0, 0, 0);
}

/// In a forked child, where the threads that hold the objects do not exist.
void forget_holders(void*) {
  holders.count.store(0);
  restore_dumpable();
}

}  // namespace

Undumpable::Undumpable() : process_(base::process_number()) {
  [[maybe_unused]] static const bool kRegistered =
      (base::at_fork_in_child(forget_holders, &holders), true);
  const std::lock_guard held(holders.lock);
  if (holders.count.fetch_add(1) > 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != kDumpable) return;
  holders.changed.store(true);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

Undumpable::~Undumpable() {
  if (process_ != base::process_number()) return;
  const std::lock_guard held(holders.lock);
  if (holders.count.fetch_sub(1) == 1) restore_dumpable();
}

}  // namespace opmux::plugin
