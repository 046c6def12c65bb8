#include "runtime/policy_watch.hpp"

#include <algorithm>

namespace opmux::runtime {

uint64_t PolicyWatch::run(uint64_t now_ns) {
  // Also on the first run, because a file may have changed before the watch existed.
  if (watch_.changed() || !started_) debounce_.note(now_ns);
  started_ = true;
  if (debounce_.due(watch_.still_written()) <= now_ns) {
    debounce_.clear();
    read_again();
  }
  const uint64_t due = debounce_.due(watch_.still_written());
  const bool looks = watch_.way() == config::PathWatch::Way::looking;
  return looks ? std::min(due, now_ns + config::PathWatch::kLookEvery) : due;
}

void PolicyWatch::read_again() {
  // A change during the read causes another event, or is noticed at the next comparison.
  Result<Files> files = config::read_policy_files(path_);
  if (!files && files.error().code() == Code::unavailable) return;
  if (!files) {
    const std::string failure(files.error().message());
    if (failure == std::exchange(failure_, failure)) return;
    seen_.clear();
    reload_(std::move(files));
    return;
  }
  failure_.clear();
  if (*files == seen_) return;
  seen_ = *files;
  reload_(std::move(files));
}

}  // namespace opmux::runtime
