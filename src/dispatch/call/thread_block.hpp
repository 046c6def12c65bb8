#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <opmux/detail/hot_plan.hpp>

#include "base/system/process.hpp"
#include "crash/hazard_slot.hpp"
#include "dispatch/call/plan_counts.hpp"
#include "dispatch/call/thread_workspace.hpp"

namespace opmux::registry {
struct ImplementationRecord;
}

namespace opmux::dispatch {

struct Evaluation;
struct CachedPlan;
class MetLayouts;

/// Calls that a thread made of one implementation.
struct KeptCount {
  /// Identifies the implementation. The address is not reused while `owner` exists.
  const ImplementationCounters* counters;
  std::weak_ptr<ImplementationCounters> owner;  ///< weak, so that a withdrawn one can be freed
  uint64_t calls;
};

/// A function of an implementation that prepares a call on this thread; see PreparationGuard.
struct Preparation {
  const registry::ImplementationRecord* implementation;
  crash::Phase phase;
  const Preparation* outer;  ///< the preparation in which this one began; null if there is none
};

/// Maximum nesting of operator calls in one thread; one hazard slot per level.
inline constexpr uint32_t kMaxDepth = crash::kMarkLevels;

/// A hazard slot holds 0 (free), a plan id (fast path), or a cold mark, which has this bit set. A
/// cold mark says that the thread reads a CompiledOperator; each one is unique in the process.
inline constexpr uint64_t kColdBit = crash::kColdBit;
/// Set in the plan ids of bound plans. They may run at any level, and in a HazardSlot that their
/// thread no longer uses for other calls.
inline constexpr uint64_t kBoundBit = uint64_t{1} << 62;

/// Capacity of the text that a kernel can write into opmux_error.
inline constexpr size_t kErrorText = 256;

/// Memory of one thread's plans. Nothing is freed before the object is destroyed.
class PlanMemory {
 public:
  /// Returns memory that is aligned to `alignment`, a power of two.
  void* take(size_t bytes, size_t alignment);

 private:
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  uintptr_t next_ = 0, end_ = 0;  ///< the unused part of the last chunk
};

/// An object that belongs to a thread; see ThreadBlock::keep_object().
class ThreadObject {
 public:
  ThreadObject() = default;
  virtual ~ThreadObject() = default;
  ThreadObject(const ThreadObject&) = delete;
  ThreadObject& operator=(const ThreadObject&) = delete;

 private:
  friend struct ThreadBlock;
  std::unique_ptr<ThreadObject> next_;
};

/// The per-thread part of the engine: cached plans, hazard slots and the current policy scope.
///
/// Reclamation protocol (hazard slots with an asymmetric fence; see also Reclaimer):
///
///   call:    store a mark in the hazard slot     writer:  store the new state and epoch
///            compiler fence                               membarrier
///            load the epoch (or the state)                load all hazard slots
///            ...use plan and state...                     free the old state once the calls
///            store 0 in the slot (release)                that were seen have ended
///
/// The call stores before it loads, and so does the writer. Without a full fence between the two,
/// the call could read the old epoch while the writer still reads an empty slot. The membarrier is
/// that fence on both sides: it runs a full barrier in every thread of the process, so the call
/// itself needs only a compiler fence. If the barrier hits a thread before its epoch load, the load
/// returns the new epoch, and the call does not use the old state. If it hits after the load, it
/// is also after the mark store, and the writer sees the mark.
///
/// The hazard slots are in the process's crash journal if it has one, otherwise in `own_slot`. They
/// move only while the thread has no call in flight. A bound plan may keep using an earlier
/// HazardSlot, so scans cover all of `places`.
///
/// Calls are counted by plan (`counts`), without a lock. When a plan is reused for another
/// implementation, its count moves to `kept_counts` under `counting`; when the thread ends,
/// all its counts move to the implementations under the lock of ThreadList. Engine::stats() holds
/// the lock of ThreadList, and `counting` while it reads a thread, so it sees each call once.
///
/// Owned by its thread; other threads read the hazard slots, `places` and the counts, and free the
/// workspace of an idle thread (see ThreadWorkspace).
struct alignas(64) ThreadBlock {
  // Accessed by the owner on every call.
  uint64_t context = 0;           ///< scope serial << 32 | ambient bits
  CachedPlan** recent = nullptr;  ///< most recently used plan by slot number; never null
  uint32_t line_count = 0;        ///< length of `recent`
  std::atomic<uint64_t>* marks = own_slot.marks;  ///< `slot->marks`, one hazard slot per level

  crash::HazardSlot* slot = &own_slot;
  crash::HazardSlot own_slot;
  crash::HazardSlotPlaces places;  ///< every HazardSlot this thread has used; the last is current
  /// The cold mark of the slow or nested call at each level; 0: none. Unlike the hazard slot it
  /// stays the same until the call ends (see SlowPathGuard and NestedCallGuard).
  std::atomic<uint64_t> slow_calls[kMaxDepth] = {};
  uint64_t number = 0;           ///< `thread_number` of the owner
  uint64_t journal_version = 0;  ///< journal version at the last request for a slot
  uint64_t cold_sequence = 0;    ///< payload of the last cold mark
  uint64_t next_layout = 0;      ///< next layout number in the range reserved for this thread
  PlanMemory plan_memory;
  std::unique_ptr<MetLayouts> met;  ///< null only in the empty block
  ThreadWorkspace workspace;        ///< for kernels of calls whose mark is in hazard slot 0
  std::unique_ptr<Evaluation> spare_decision;  ///< null while it is in use
  const Preparation* preparing = nullptr;      ///< the innermost one in progress

  CachedPlan* all_plans = nullptr;  ///< list of all plans this thread has allocated
  PlanCounts counts;                ///< the calls of these plans
  /// Held while a plan starts to count for another implementation, and while counts are read.
  base::ForkMutex counting;
  /// Calls that the plans counted before they were reused, sorted by `counters`.
  std::vector<KeptCount> kept_counts;

  /// Where kernels report errors, by nesting level. Plans point to level 0 unless they run inside
  /// another call.
  opmux_error errors[kMaxDepth] = {};
  char error_texts[kMaxDepth][kErrorText] = {};

  std::unique_ptr<ThreadObject> objects;  ///< list, the newest first
  ThreadBlock* next = nullptr;            ///< next block in ThreadList

  /// Nesting level that a call starting now would have; kMaxDepth if no hazard slot is free.
  uint32_t depth() const;
  /// Stores a new cold mark in `slow_calls` and returns it. Marks in the hazard slot of this level
  /// must follow in program order.
  uint64_t begin_slow_call(uint32_t depth) {
    const uint64_t mark = kColdBit | ++cold_sequence;
    slow_calls[depth].store(mark, std::memory_order_relaxed);
    return mark;
  }
  /// Stores a new cold mark in the hazard slot of level `depth`. Loads of `OperatorSlot::current`
  /// must follow this call in program order.
  void mark_cold(uint32_t depth);
  /// Number of calls that this thread's cached plans have finished, modulo resets. It changes only
  /// when the call in hazard slot 0 ends: the calls inside it are counted in PlanCount::nested.
  uint64_t finished_calls() const;
  /// Returns the first of four consecutive layout numbers, unique in the process; a multiple of 4.
  uint64_t new_layouts();
  /// Adds calls to `kept_counts`. The caller holds `counting`. Before the list grows it drops the
  /// counts of implementations that no longer exist.
  void keep_count(const std::shared_ptr<ImplementationCounters>& counters, uint64_t calls);
  /// Destroys `objects`, the newest first. They may use the block.
  void drop_objects();
  /// Keeps an object until the thread ends.
  void keep_object(std::unique_ptr<ThreadObject> object);
  /// Ends protection at this level. The release orders all reads of the call before the store.
  void clear(uint32_t depth) { marks[depth].store(0, std::memory_order_release); }
};

/// The calling thread's block. Until the thread calls own_thread_block(), this is a shared empty
/// block whose line_count of 0 sends every call to the slow path.
extern thread_local constinit ThreadBlock* thread_block __attribute__((tls_model("initial-exec")));

/// Returns the calling thread's private block and creates it on first use. Moves its hazard slots
/// into the crash journal if the journal has changed and no call is in flight. Throws
/// std::bad_alloc if there is no memory for the block.
///
/// The block is freed when the thread ends, after the destructors of thread_local objects, which
/// may call operators. It is a value of a pthread key, because the C library ends the process if it
/// has no memory to register the destructor of a thread_local object. The block of the thread that
/// ends the process is not freed.
ThreadBlock& own_thread_block();

/// Grows `recent` so that slot numbers below `count` are valid indices.
void reserve_lines(ThreadBlock& block, uint32_t count);

/// A call that a scan found in a hazard slot.
struct Blocker {
  uint64_t thread;        ///< ThreadBlock::number
  uint32_t place, level;  ///< index into `places` and nesting level
  uint64_t mark;
  uint64_t slow_call;  ///< its entry in ThreadBlock::slow_calls; 0: a plan in hazard slot 0
  uint64_t finished;   ///< ThreadBlock::finished_calls() at the scan, for a plan in slot 0
};

/// Visits the blocks of all threads. Holds the list's lock, so that no thread can end meanwhile.
template <class Visit>
void for_each_thread(Visit&& visit);

/// The list of all thread blocks. Use for_each_thread() to read it.
class ThreadList {
 public:
  static ThreadList& instance();
  void add(ThreadBlock* block);
  /// Removes a block and adds its counts to those of the implementations, in one step under the
  /// lock.
  void remove(ThreadBlock* block);

  /// Locks the list. Code that moves counts of calls from a thread or a bound plan to an
  /// implementation holds this lock.
  [[nodiscard]] std::unique_lock<base::ForkMutex> lock() { return std::unique_lock(mutex_); }
  /// Visits all blocks. The caller holds lock().
  template <class Visit>
  void visit_locked(Visit&& visitor) {
    for (ThreadBlock* block = first_; block != nullptr; block = block->next) visitor(*block);
  }

  /// Drops all other threads from the list in a forked child, where only the calling thread exists.
  void keep_only(ThreadBlock* survivor);

 private:
  base::ForkMutex mutex_;
  ThreadBlock* first_ = nullptr;
};

template <class Visit>
void for_each_thread(Visit&& visit) {
  const auto lock = ThreadList::instance().lock();
  ThreadList::instance().visit_locked(std::forward<Visit>(visit));
}

/// Issues a full memory barrier in every running thread of the process. Stores that this thread
/// made before the call are visible to loads that other threads make after their barrier; stores
/// that they made before their barrier are visible to this thread afterwards.
///
/// Uses membarrier(). Where the kernel or a sandbox refuses it, the calling thread visits every
/// processor instead, which is slower and as strong. False if that is refused too; then there was
/// no barrier, and nothing may be freed.
[[nodiscard]] bool synchronize_all_threads();

}  // namespace opmux::dispatch
