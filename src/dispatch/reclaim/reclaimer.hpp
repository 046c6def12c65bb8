#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <opmux/status.hpp>

#include "dispatch/call/thread_block.hpp"

namespace opmux::dispatch {

/// An unpublished object that calls in flight may still use.
class Retired {
 public:
  virtual ~Retired() = default;
  /// True if a call that runs the plan with this id uses this object.
  virtual bool owns_plan(uint64_t plan_id) const = 0;
};

/// Deferred reclamation by hazard slots (see ThreadBlock). An object is freed once every call that
/// could have seen it has ended.
///
/// retire() requires that the caller has already unpublished the objects. It then issues a
/// membarrier and scans the hazard slots of all threads. A slot blocks a batch if it holds the id
/// of a plan that one of the objects owns, or a cold mark, because a thread on the slow path may be
/// reading any state. A call that sets its slot after the membarrier finds the objects unpublished,
/// so the set of blockers only shrinks.
///
/// Not thread-safe: the owner serializes all calls under its writer lock.
class Reclaimer {
 public:
  ~Reclaimer();

  /// Takes ownership of objects that were just unpublished, as one batch. Never waits. Also frees
  /// earlier batches whose blockers are gone.
  void retire(std::vector<std::unique_ptr<Retired>> items);

  /// Frees every batch that has no blockers left.
  void collect();

  /// Number of batches that still wait for a call to end.
  size_t waiting() const { return batches_.size(); }

  /// The hazard slots that keep batches from being freed.
  std::vector<Blocker> blockers() const;

 private:
  struct Batch {
    std::vector<std::unique_ptr<Retired>> items;
    std::vector<Blocker> blockers;
  };
  std::vector<Batch> batches_;
};

/// Scans the hazard slots of all threads. Returns the cold marks and the plan ids that `relevant`
/// accepts. Call synchronize_all_threads() first; otherwise a mark may still be in the store buffer
/// of its thread.
std::vector<Blocker> marks_in_flight(const std::function<bool(uint64_t mark)>& relevant);

/// Removes the blockers whose hazard slot no longer holds the same mark.
void drop_finished(std::vector<Blocker>& blockers);

/// Blocks until the calls behind all of these marks have ended. Fails with `failed`, reason
/// "withdraw.inside", if one of the marks belongs to the calling thread, because it would wait for
/// itself.
Status wait_until_left(std::vector<Blocker> blockers);

}  // namespace opmux::dispatch
