#pragma once

#include <cstdint>
#include <functional>
#include <list>
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
///
/// Objects are unpublished before they are retired, and then nothing may fail. The owner therefore
/// makes a batch with prepare() first; the functions after that need no memory.
class Reclaimer {
 public:
  class Batch;
  using Batches = std::list<Batch>;

  ~Reclaimer();

  /// Makes a list of one batch that has room for this many objects.
  static Batches prepare(size_t items);

  /// Takes ownership of batches whose objects were just unpublished. Never waits. Also collect()s.
  /// Drops batches without objects.
  void retire(Batches batches) noexcept;
  /// The same for one batch of these objects, which it allocates.
  void retire(std::vector<std::unique_ptr<Retired>> items);

  /// Moves every batch that has no blockers left to the finished ones.
  void collect() noexcept;

  /// Hands out the finished batches, whose objects the calling thread destroys. Until forget() they
  /// count as waiting for waits_for() of other threads.
  Batches take_finished() noexcept;
  /// Called after the objects of these batches were destroyed.
  void forget(const Batches& finished) noexcept;

  /// Number of batches that still wait for a call to end.
  size_t waiting() const { return batches_.size(); }
  /// Number of the newest batch. Batches are numbered in the order in which they were retired.
  uint64_t newest() const { return last_number_; }
  /// Whether a batch with this or a lower number still waits or is being destroyed by another
  /// thread. A destructor that asks does not wait for itself.
  bool waits_for(uint64_t number) const;
  /// False if the last barrier was refused by the system: batches wait until one succeeds.
  bool synchronized() const;

  /// Visits the calls that keep batches from being freed.
  template <class Visit>
  void for_each_blocker(Visit&& visit) const;
  /// True if one of these calls is on the calling thread.
  bool blocked_by_this_thread() const;
  size_t blocker_count() const;

 private:
  /// A batch that a thread of this process is destroying.
  struct Destroyed {
    uint64_t number, process;
    std::thread::id thread;
  };
  /// Notes the calls that may use the objects. `synchronized`: there was a barrier.
  static void scan(Batch& batch, bool synchronized) noexcept;

  Batches batches_, finished_;
  std::list<Destroyed> destroyed_;
  uint64_t last_number_ = 0;
};

/// Objects that are retired together.
class Reclaimer::Batch {
 public:
  /// Adds an object. There must be room for it.
  void add(std::unique_ptr<Retired> item) noexcept { items_.push_back(std::move(item)); }
  size_t size() const { return items_.size(); }
  /// Destroys the objects.
  void clear() { items_.clear(); }

 private:
  friend class Reclaimer;
  /// Result of the search for calls that may use the objects.
  enum class Scan : uint8_t {
    no_barrier,  ///< nothing: the system refused the barrier
    no_memory,   ///< there are too many calls to list
    done
  };
  bool owns_plan(uint64_t plan_id) const;
  bool slow_calls_use_it() const;

  std::vector<std::unique_ptr<Retired>> items_;
  std::vector<Blocker> blockers_;
  uint64_t number_ = 0;
  Scan scan_ = Scan::no_barrier;
  std::list<Destroyed> destroyed_;  ///< one entry, which take_finished() moves to the Reclaimer
};

template <class Visit>
void Reclaimer::for_each_blocker(Visit&& visit) const {
  for (const Batch& batch : batches_) {
    for (const Blocker& blocker : batch.blockers_) visit(blocker);
  }
}

/// True if a thread runs a call. Call synchronize_all_threads() first, as for marks_in_flight().
bool has_mark(const ThreadBlock& block);

/// Scans the hazard slots of all threads for calls of plans whose id `relevant` accepts, and for
/// calls on the slow path that have not chosen a plan. Call synchronize_all_threads() first;
/// otherwise a mark may still be in the store buffer of its thread.
std::vector<Blocker> marks_in_flight(const std::function<bool(uint64_t plan_id)>& relevant);
/// The same into `found`, which must be empty. False if there is no memory for all of them.
bool find_marks_in_flight(const std::function<bool(uint64_t plan_id)>& relevant,
                          std::vector<Blocker>& found) noexcept;

/// Waits until each call that is in flight now has ended, whatever it runs. Needs no memory, and
/// waits longer than needed, so it is for the case that there is none. False, and it does not wait,
/// if the calling thread is in a call.
bool wait_for_all_calls() noexcept;

/// Removes the blockers whose call has ended, and those on the slow path that have chosen a plan
/// that is not relevant.
void drop_finished(std::vector<Blocker>& blockers,
                   const std::function<bool(uint64_t plan_id)>& relevant) noexcept;

/// The failure of a function that waits for calls, if one of these calls is on the calling thread,
/// which would wait for itself: `failed`, "withdraw.inside". Ok otherwise.
Status check_not_inside(const std::vector<Blocker>& blockers);
Status waits_for_itself();

}  // namespace opmux::dispatch
