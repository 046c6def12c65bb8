#include "dispatch/call/thread_block.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/system/process.hpp"
#include "crash/crash_handler.hpp"
#include "crash/process_journal.hpp"
#include "dispatch/decide/evaluation.hpp"
#include "dispatch/plan/cached_plan.hpp"

namespace opmux::dispatch {
namespace {

/// The shared block of threads that have not called own_thread_block() yet. Never written.
constinit ThreadBlock nobody;

long membarrier(int command) { return syscall(__NR_membarrier, command, 0, 0); }

/// Unlists and frees the calling thread's block. If the thread ends inside an implementation, the
/// crash journal keeps its slot.
void leave(ThreadBlock* block) {
  block->drop_objects();
  thread_block = &nobody;
  thread_number = 0;
  base::thread_marks = nullptr;
  crash::free_signal_stack();
  ThreadList::instance().remove(block);
  if (const uint32_t word = block->places.innermost()) {
    crash::thread_ends_inside(word);
  } else {
    crash::ProcessJournal::instance().give_back(block->slot);
  }
  for (CachedPlan* plan = block->all_plans; plan != nullptr;) {
    CachedPlan* next = plan->next_of_thread;
    plan->~CachedPlan();
    plan = next;
  }
  delete[] block->recent;
  delete block;
}

/// The key whose values are the blocks of the threads; nullopt if the process has no key left, and
/// blocks are leaked. Created when the library is loaded, so that its number is small and its
/// values need no memory.
const std::optional<pthread_key_t> kBlockOfThread = []() -> std::optional<pthread_key_t> {
  pthread_key_t made = 0;
  const auto end = [](void* block) { leave(static_cast<ThreadBlock*>(block)); };
  if (pthread_key_create(&made, end) != 0) return std::nullopt;
  return made;
}();

}  // namespace

// The attribute is repeated, because GCC drops it in a unit that has a definition without it.
thread_local constinit ThreadBlock* thread_block __attribute__((tls_model("initial-exec"))) =
    &nobody;
thread_local constinit uint64_t thread_number __attribute__((tls_model("initial-exec"))) = 0;

void* PlanMemory::take(size_t bytes, size_t alignment) {
  // The first chunk is small, because most threads of a program call few operators.
  constexpr size_t kFirstChunk = 4096, kChunk = 32768;
  const auto aligned = [&] { return (next_ + alignment - 1) & ~(uintptr_t{alignment} - 1); };
  if (next_ == 0 || aligned() + bytes > end_) {
    const size_t size = std::max(bytes + alignment, chunks_.empty() ? kFirstChunk : kChunk);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    next_ = reinterpret_cast<uintptr_t>(chunks_.back().get());
    end_ = next_ + size;
  }
  void* const start = reinterpret_cast<void*>(aligned());
  next_ = aligned() + bytes;
  return start;
}

uint32_t ThreadBlock::depth() const {
  uint32_t level = 0;
  while (level < kMaxDepth && marks[level].load(std::memory_order_relaxed) != 0) ++level;
  return level;
}

void ThreadBlock::mark_cold(uint32_t depth) {
  marks[depth].store(begin_slow_call(depth), std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

uint64_t ThreadBlock::finished_calls() const {
  uint64_t sum = 0;
  counts.for_each(
      [&](const PlanCount& count) { sum += count.calls.load(std::memory_order_acquire); });
  return sum;
}

void ThreadBlock::keep_count(const std::shared_ptr<ImplementationCounters>& counters,
                             uint64_t calls) {
  if (calls == 0) return;
  const auto place = [&] {
    return std::ranges::lower_bound(kept_counts, counters.get(), {}, &KeptCount::counters);
  };
  auto at = place();
  if (at != kept_counts.end() && at->counters == counters.get()) {
    at->calls += calls;
    return;
  }
  if (kept_counts.size() == kept_counts.capacity()) {
    std::erase_if(kept_counts, [](const KeptCount& kept) { return kept.owner.expired(); });
    at = place();
  }
  kept_counts.insert(at, {counters.get(), counters, calls});
}

void ThreadBlock::drop_objects() {
  while (objects != nullptr) {
    // Unlinked first, because its destructor may add an object.
    const std::unique_ptr<ThreadObject> newest = std::move(objects);
    objects = std::move(newest->next_);
  }
}

void ThreadBlock::keep_object(std::unique_ptr<ThreadObject> object) {
  object->next_ = std::move(objects);
  objects = std::move(object);
}

uint64_t ThreadBlock::new_layouts() {
  static std::atomic<uint64_t> ranges{0};
  constexpr uint64_t kRange = uint64_t{1} << 20;
  if (next_layout % kRange == 0) {
    next_layout = (ranges.fetch_add(1, std::memory_order_relaxed) + 1) * kRange;
  }
  return std::exchange(next_layout, next_layout + kMaxLayouts);
}

namespace {

/// Moves the hazard slots of the calling thread into the crash journal. The thread must have no
/// call in flight.
void follow_journal(ThreadBlock& block) {
  crash::ProcessJournal& journal = crash::ProcessJournal::instance();
  block.journal_version = journal.version();
  if (block.journal_version == 0) return;
  if (journal.has_handler()) crash::ensure_signal_stack();
  if (journal.holds(block.slot)) return;
  for (auto& place : block.places.places) {
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    crash::HazardSlot* const slot = journal.take_slot();
    if (slot == nullptr) return;
    place.store(slot, std::memory_order_release);
    block.slot = slot;
    block.marks = slot->marks;
    return;
  }
}

/// Creates the block of the calling thread. If there is no memory, nothing has changed.
[[gnu::noinline]] void make_thread_block() {
  static std::atomic<uint64_t> blocks{0};
  auto made = std::make_unique<ThreadBlock>();
  made->met = std::make_unique<MetLayouts>();
  ThreadBlock* const block = made.get();
  block->number = blocks.fetch_add(1, std::memory_order_relaxed) + 1;
  // Cold marks are unique in the process, so that a Blocker cannot match a call of another thread.
  block->cold_sequence = block->number << 36 & ~kColdBit;
  for (uint32_t level = 0; level < kMaxDepth; ++level) {
    block->errors[level] = {sizeof(opmux_error), OPMUX_OK, block->error_texts[level],
                            kErrorText,          0,        {nullptr, 0}};
  }
  block->places.places[0].store(&block->own_slot, std::memory_order_relaxed);
  if (kBlockOfThread && pthread_setspecific(*kBlockOfThread, block) != 0) throw std::bad_alloc();
  ThreadList::instance().add(made.release());
  thread_block = block;
  thread_number = block->number;
  base::thread_marks = &block->places;
}

}  // namespace

ThreadBlock& own_thread_block() {
  if (thread_block == &nobody) make_thread_block();
  ThreadBlock& own = *thread_block;
  const uint64_t version = crash::ProcessJournal::instance().version();
  if (own.journal_version != version && own.depth() == 0) [[unlikely]]
    follow_journal(own);
  return own;
}

void reserve_lines(ThreadBlock& block, uint32_t count) {
  if (count <= block.line_count) return;
  const uint32_t size = std::max(count + count / 2, 64u);
  auto** grown = new CachedPlan*[size];
  std::copy(block.recent, block.recent + block.line_count, grown);
  std::fill(grown + block.line_count, grown + size, &CachedPlan::none());
  delete[] block.recent;
  block.recent = grown;
  block.line_count = size;
}

namespace {

constinit ThreadList all_threads;

// Runs when the library is loaded rather than on first use, so that no fork can interrupt it.
[[maybe_unused]] const bool kWatching = [] {
  base::at_fork_in_child([](void*) { all_threads.keep_only(thread_block); }, &all_threads);
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}();

}  // namespace

ThreadList& ThreadList::instance() { return all_threads; }

void ThreadList::add(ThreadBlock* block) {
  mutex_.lock();
  block->next = first_;
  first_ = block;
  mutex_.unlock();
}

void ThreadList::remove(ThreadBlock* block) {
  const std::lock_guard lock(mutex_);
  ThreadBlock** at = &first_;
  while (*at != nullptr && *at != block) at = &(*at)->next;
  if (*at == block) *at = block->next;
  const auto add = [](ImplementationCounters* counters, uint64_t calls) {
    if (counters != nullptr) counters->calls.fetch_add(calls, std::memory_order_relaxed);
  };
  for (const KeptCount& kept : block->kept_counts) add(kept.owner.lock().get(), kept.calls);
  block->counts.for_each([&](const PlanCount& count) { add(count.counters.get(), count.all()); });
}

void ThreadList::keep_only(ThreadBlock* survivor) {
  first_ = survivor == &nobody ? nullptr : survivor;
  if (first_ != nullptr) first_->next = nullptr;
  membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

namespace {

/// Runs the calling thread on each processor in turn. A thread that was running on one of them is
/// switched out for that, and the kernel makes a full barrier when it switches threads. False if
/// the system refuses it.
bool run_on_every_processor() {
  const int count = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  const size_t bytes = CPU_ALLOC_SIZE(count);
  const auto make_set = [count] {
    return std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)>(CPU_ALLOC(count),
                                                            [](cpu_set_t* set) { CPU_FREE(set); });
  };
  const auto before = make_set(), one = make_set();
  if (before == nullptr || one == nullptr) return false;
  if (sched_getaffinity(0, bytes, before.get()) != 0) return false;
  bool refused = false;
  for (int processor = 0; processor < count; ++processor) {
    CPU_ZERO_S(bytes, one.get());
    CPU_SET_S(processor, bytes, one.get());
    // EINVAL: the processor is offline or not in the cpuset of this process, so none of its threads
    // runs there.
    refused |= sched_setaffinity(0, bytes, one.get()) != 0 && errno != EINVAL;
  }
  sched_setaffinity(0, bytes, before.get());
  return !refused;
}

}  // namespace

bool synchronize_all_threads() {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return true;
  // Kernels before 4.14 have only the global form, which waits for all processors.
  if (membarrier(MEMBARRIER_CMD_GLOBAL) == 0) return true;
  return run_on_every_processor();
}

}  // namespace opmux::dispatch
