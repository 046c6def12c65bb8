#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
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
  /// False if calls on the slow path own what they use of it, so that they do not block it.
  virtual bool slow_calls_use_it() const { return true; }
};

/// Deferred reclamation by hazard slots (see ThreadBlock). An object is freed once every call that
/// could have seen it has ended.
///
/// retire() requires that the caller has already unpublished the objects. It then issues a barrier
/// in all threads and scans their hazard slots. A call blocks a batch if
///  - it runs a plan that one of the objects owns, or
///  - it is on the slow path and has not yet chosen a plan, because it may be reading any state.
/// A call that sets its slot after the barrier finds the objects unpublished, so the set of
/// blockers only shrinks.
///
/// A blocker is gone when that call has ended, not merely when its slot has another value: a thread
/// that calls the same plan again and again always shows the same mark. A slow call is recognised
/// by its cold mark, which ThreadBlock::slow_calls keeps until it ends; a call of a cached plan by
/// the thread's count of finished calls. Only a bound plan that the same thread calls again counts
/// as the same call.
///
/// Not thread-safe: the owner serializes all calls under its writer lock. The engine destroys what
/// take_finished() returns after it has released that lock, because destructors call code of
/// vendors and may wait for another lock, such as that of the Python interpreter.
class Reclaimer {
 public:
  ~Reclaimer();

  /// Takes ownership of objects that were just unpublished, as one batch. Never waits. Also
  /// collect()s.
  void retire(std::vector<std::unique_ptr<Retired>> items);

  /// Moves every batch that has no blockers left to the finished ones.
  void collect();

  /// Objects that no call uses any more.
  struct Finished {
    std::vector<std::unique_ptr<Retired>> items;
    std::vector<uint64_t> batches;  ///< their numbers
  };
  /// Hands out the finished objects, which the calling thread destroys. Until forget() the batches
  /// count as waiting for waits_for() of other threads.
  Finished take_finished();
  /// Called after the objects of these batches were destroyed.
  void forget(const std::vector<uint64_t>& batches);

  /// Number of batches that still wait for a call to end.
  size_t waiting() const { return batches_.size(); }
  /// Number of the newest batch. Batches are numbered in the order in which they were retired.
  uint64_t newest() const { return last_number_; }
  /// Whether a batch with this or a lower number still waits or is being destroyed by another
  /// thread. A destructor that asks does not wait for itself.
  bool waits_for(uint64_t number) const;
  /// False if the last barrier was refused by the system: batches wait until one succeeds.
  bool synchronized() const;

  /// The calls that keep batches from being freed.
  std::vector<Blocker> blockers() const;

 private:
  struct Batch {
    std::vector<std::unique_ptr<Retired>> items;
    std::vector<Blocker> blockers;
    uint64_t number;
    bool scanned;  ///< false: no barrier yet, so nothing is known about calls

    bool owns_plan(uint64_t plan_id) const;
    bool slow_calls_use_it() const;
  };
  static void scan(Batch& batch);

  /// A batch that a thread of this process is destroying.
  struct Destroyed {
    uint64_t number, process;
    std::thread::id thread;
  };

  std::vector<Batch> batches_;
  Finished finished_;
  std::vector<Destroyed> destroyed_;
  uint64_t last_number_ = 0;
};

/// True if a thread runs a call. Call synchronize_all_threads() first, as for marks_in_flight().
bool has_mark(const ThreadBlock& block);

/// Scans the hazard slots of all threads for calls of plans whose id `relevant` accepts, and for
/// calls on the slow path that have not chosen a plan. Call synchronize_all_threads() first;
/// otherwise a mark may still be in the store buffer of its thread.
std::vector<Blocker> marks_in_flight(const std::function<bool(uint64_t plan_id)>& relevant);

/// Removes the blockers whose call has ended, and those on the slow path that have chosen a plan
/// that is not relevant.
void drop_finished(std::vector<Blocker>& blockers,
                   const std::function<bool(uint64_t plan_id)>& relevant);

/// The failure of a function that waits for calls, if one of these calls is on the calling thread,
/// which would wait for itself: `failed`, "withdraw.inside". Ok otherwise.
Status check_not_inside(const std::vector<Blocker>& blockers);

}  // namespace opmux::dispatch
