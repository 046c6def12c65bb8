#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <opmux/export.hpp>

#include "base/process.hpp"
#include "health/mark_slot.hpp"

namespace opmux::dispatch {

struct Decision;
struct GuardedPlan;

inline constexpr uint32_t kMaxDepth = health::kMarkLevels;  ///< calls inside calls

/// Marks with this bit say "reading the operator's state" and are unique; others are plan ids.
inline constexpr uint64_t kColdBit = health::kColdBit;

/// What one thread owns of the engine: its plans, its in-flight marks, the policy scope it is in.
///
/// A mark is set before the operator's epoch is read and cleared when the call is over. Whoever
/// retires something publishes first, then makes every thread's stores visible (membarrier), then
/// looks at the marks: a call either saw the new epoch or is seen.
///
/// Marks lie in the process's crash journal if it has one, else here. They move when no call is
/// inside; plans that a program bound may go on at an earlier place, so that others look at all.
struct alignas(64) ThreadBlock {
  // Read and written by the owner on every call.
  uint64_t context = 0;            ///< scope serial << 32 | ambient bits
  GuardedPlan** recent = nullptr;  ///< by slot number: the plan to try first, never null
  uint32_t line_count = 0;         ///< length of `recent`
  std::atomic<uint64_t>* marks = own_slot.marks;  ///< of `slot`; for the owner

  health::MarkSlot* slot = &own_slot;
  health::MarkSlot own_slot;
  health::MarkPlaces places;     ///< of marks, all that were ever used; the last is current
  uint64_t journal_version = 0;  ///< that it was last asked for a slot
  uint64_t cold_sequence = 0;
  uint64_t next_layout = 0;                             ///< within a range that is this thread's
  std::vector<std::unique_ptr<std::byte[]>> memory;     ///< of plans, kept until the thread ends
  std::vector<std::unique_ptr<std::byte[]>> workspace;  ///< grow-only; the last one is current
  size_t workspace_size = 0;
  std::unique_ptr<Decision> spare_decision;  ///< null while it is in use

  /// All plans this thread ever made room for, for readers of the counters.
  std::atomic<GuardedPlan*> all_plans{nullptr};
  std::atomic<uint32_t> moving{0};  ///< odd while a plan's counter is handed over

  ThreadBlock* next = nullptr;  ///< in the list of all blocks

  /// Depth of the call that would start now; kMaxDepth if there is no room.
  uint32_t depth() const;
  /// Marks level `depth` as reading operator state.
  void mark_cold(uint32_t depth);
  /// The first of four numbers for layouts of views that no others have; a multiple of four.
  uint64_t new_layouts();
  void clear(uint32_t depth) { marks[depth].store(0, std::memory_order_release); }
};

/// The calling thread's block. Until the thread first needs one it is a shared empty block, whose
/// line_count of 0 sends every call to the slow path.
OPMUX_API extern thread_local constinit ThreadBlock* thread_block
    __attribute__((tls_model("initial-exec")));

/// The calling thread's own block, made if needed, with its marks where they should be.
ThreadBlock& own_thread_block();

/// Room for slot numbers below `count` in this thread's `recent`.
void reserve_lines(ThreadBlock& block, uint32_t count);

/// A mark that was seen in a thread.
struct Blocker {
  const ThreadBlock* block;
  uint32_t place, level;
  uint64_t mark;

  friend bool operator==(const Blocker&, const Blocker&) = default;
};

/// Visits all threads' blocks under the list's lock.
template <class Visit>
void for_each_thread(Visit&& visit);

/// The list of all blocks; private to this file's templates.
class ThreadList {
 public:
  static ThreadList& instance();
  void add(ThreadBlock* block);
  void remove(ThreadBlock* block);

  template <class Visit>
  void visit(Visit&& visitor) {
    mutex_.lock();
    for (ThreadBlock* block = first_; block != nullptr; block = block->next) visitor(*block);
    mutex_.unlock();
  }

  /// In a forked child only the calling thread lives on.
  void keep_only(ThreadBlock* survivor);

 private:
  base::ForkMutex mutex_;
  ThreadBlock* first_ = nullptr;
};

template <class Visit>
void for_each_thread(Visit&& visit) {
  ThreadList::instance().visit(std::forward<Visit>(visit));
}

/// Makes the stores of all threads of the process visible to this one, and the reverse.
void synchronize_all_threads();

}  // namespace opmux::dispatch
