#include "base/thread_pool.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <exception>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/system/process.hpp"
#include "base/system/thread_state.hpp"

namespace opmux::base {
namespace {

int find_gomp(dl_phdr_info* info, size_t, void* path) {
  const std::string_view name = info->dlpi_name;
  const size_t file = name.rfind('/') + 1;  // 0 if there is no folder
  if (!name.substr(file).starts_with("libgomp")) return 0;
  *static_cast<std::string*>(path) = name;
  return 1;
}

template <class Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

const OpenMp* find_functions() {
  std::string path;
  if (dl_iterate_phdr(find_gomp, &path) == 0) return nullptr;
  // Pin the library, because the function pointers must stay valid.
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library == nullptr) return nullptr;
  static OpenMp found;
  const bool all = find_function(library, "GOMP_parallel", found.parallel) &&
                   find_function(library, "omp_get_max_threads", found.max_threads);
  return all ? &found : nullptr;
}

}  // namespace

const OpenMp* loaded_openmp() {
  constexpr uint64_t kLoadedIn = 1;  // the number of the process that loaded this library
  if (process_number() != kLoadedIn) return nullptr;
  // Cache only success, because the process may load OpenMP later.
  static std::atomic<const OpenMp*> found{nullptr};
  if (const OpenMp* known = found.load(std::memory_order_acquire)) return known;
  static ForkMutex mutex;
  const std::lock_guard lock(mutex);
  if (found.load(std::memory_order_acquire) == nullptr) {
    found.store(find_functions(), std::memory_order_release);
  }
  return found.load(std::memory_order_acquire);
}

namespace {

// Number of polls before a thread sleeps: about 20 microseconds, which is about the cost of waking
// it.
constexpr int kLooks = 400;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Blocks until `word` differs from `old`. Spins first, then sleeps.
void wait_for_change(const std::atomic<uint32_t>& word, uint32_t old) {
  for (int i = 0; i < kLooks; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause_briefly();
  }
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

/// The worker threads of one process. A forked child starts a new Crew.
class ThreadPool::Crew {
 public:
  explicit Crew(int helpers) {
    const BlockedSignals blocked;
    // If no more threads can be started, the existing ones, or the caller alone, do the work.
    while (helpers-- > 0 && start_one()) {
    }
  }
  ~Crew() {
    ending_.store(true, std::memory_order_relaxed);
    call();
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  uint64_t process() const { return process_; }

  void run(uint32_t helpers, int64_t count, void* context, void (*body)(void*, int64_t)) {
    loop_ = {count, context, body, thread_marks};
    next_.store(0, std::memory_order_relaxed);
    door_.store(kOpen | helpers * kMost, std::memory_order_release);
    call();
    take_pieces();
    // Close the door: no further helper enters. Wait for the helpers inside to finish their pieces.
    uint32_t door = door_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    while (door % kMost != 0) {
      wait_for_change(door_, door);
      door = door_.load(std::memory_order_acquire);
    }
  }

 private:
  struct Loop {
    int64_t count;
    void* context;
    void (*body)(void*, int64_t);
    const void* marks;  ///< thread_marks of the thread that called parallel_for
  };
  // Layout of door_: kOpen while helpers may enter, then the maximum number of helpers (in units of
  // kMost), then the number of helpers inside (below kMost).
  static constexpr uint32_t kOpen = 1u << 31, kMost = 1u << 15;

  bool start_one() {
    try {
      threads_.emplace_back([this] { serve(); });
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
  void call() {
    signal_.fetch_add(1, std::memory_order_release);
    signal_.notify_all();
  }
  void serve() {
    std::fesetenv(FE_DFL_ENV);
    while (!ending_.load(std::memory_order_relaxed)) {
      const uint32_t signal = signal_.load(std::memory_order_acquire);
      if (enter()) {
        help();
        leave();
      }
      wait_for_change(signal_, signal);
    }
  }
  bool enter() {
    uint32_t door = door_.load(std::memory_order_relaxed);
    while ((door & kOpen) != 0 && door % kMost < (door & ~kOpen) / kMost) {
      if (door_.compare_exchange_weak(door, door + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  void leave() {
    const uint32_t door = door_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if ((door & kOpen) == 0 && door % kMost == 0) door_.notify_one();
  }
  void help() {
    const LentHazardSlot inside(loop_.marks);
    const FloatControl before;
    take_pieces();
    before.restore();
  }
  void take_pieces() {
    const auto take = [this] { return next_.fetch_add(1, std::memory_order_relaxed); };
    for (int64_t i = take(); i < loop_.count; i = take()) loop_.body(loop_.context, i);
  }

  // On separate cache lines, because threads poll one while others write the next.
  alignas(64) std::atomic<uint32_t> signal_{0};
  alignas(64) std::atomic<uint32_t> door_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) Loop loop_{};
  std::atomic<bool> ending_{false};
  const uint64_t process_ = process_number();
  std::vector<std::thread> threads_;
};

namespace {

constexpr int kMostThreads = 1 << 14;

/// A loop whose iterations OpenMP's threads take one by one.
struct SharedLoop {
  int64_t count;
  void* context;
  void (*body)(void*, int64_t);
  const void* marks;  ///< thread_marks of the thread that called parallel_for
  std::atomic<int64_t> next{0};

  static void take_pieces(void* loop) {
    SharedLoop& own = *static_cast<SharedLoop*>(loop);
    const LentHazardSlot inside(own.marks);
    const FloatControl before;
    const auto take = [&own] { return own.next.fetch_add(1, std::memory_order_relaxed); };
    for (int64_t i = take(); i < own.count; i = take()) own.body(own.context, i);
    before.restore();
  }
};

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int i = 0; i <= std::clamp(threads, 1, kMostThreads); ++i) lent_.push_back({this, i});
}

ThreadPool::~ThreadPool() {
  // In a forked child, leak the parent's Crew: its threads do not exist here and cannot be joined.
  if (crew_ != nullptr && crew_->process() != process_number()) (void)crew_.release();
}

void ThreadPool::use_openmp(const OpenMp& openmp, int limit) {
  const std::lock_guard lock(switching_);
  if (openmp_.load(std::memory_order_relaxed) != nullptr) return;
  const int most = std::clamp(limit > 0 ? limit : openmp.max_threads(), 1, kMostThreads);
  std::vector<Lent> lent;
  for (int i = 0; i <= most; ++i) lent.push_back({this, i});
  lent_openmp_ = std::move(lent);
  openmp_process_ = process_number();
  openmp_.store(&openmp, std::memory_order_release);
}

const OpenMp* ThreadPool::openmp() const {
  const OpenMp* const openmp = openmp_.load(std::memory_order_acquire);
  return openmp != nullptr && openmp_process_ == process_number() ? openmp : nullptr;
}

int ThreadPool::threads() const {
  const OpenMp* const openmp = this->openmp();
  if (openmp == nullptr) return own_threads();
  return std::clamp(openmp->max_threads(), 1, static_cast<int>(lent_openmp_.size()) - 1);
}

void* ThreadPool::lend(int threads) {
  std::vector<Lent>& lent = openmp() != nullptr ? lent_openmp_ : lent_;
  return &lent[static_cast<size_t>(std::clamp(threads, 1, static_cast<int>(lent.size()) - 1))];
}

ThreadPool::Crew* ThreadPool::crew() {
  if (crew_ != nullptr && crew_->process() == process_number()) return crew_.get();
  (void)crew_.release();
  crew_.reset(new (std::nothrow) Crew(own_threads() - 1));
  return crew_.get();
}

void ThreadPool::parallel_for(void* lent, int64_t count, void* context,
                              void (*body)(void* context, int64_t index)) {
  const auto [pool, threads] = *static_cast<Lent*>(lent);
  const OpenMp* const openmp = pool->openmp();
  const int64_t wanted = std::min<int64_t>(
      openmp != nullptr ? std::min(threads, openmp->max_threads()) : threads, count);
  if (wanted > 1 && pool->busy_.try_lock()) {
    if (openmp != nullptr) {
      SharedLoop loop{count, context, body, thread_marks};
      openmp->parallel(&SharedLoop::take_pieces, &loop, static_cast<unsigned>(wanted), 0);
      return pool->busy_.unlock();
    }
    Crew* const crew = pool->crew();
    const int64_t helpers = wanted - 1;
    if (crew != nullptr) crew->run(static_cast<uint32_t>(helpers), count, context, body);
    pool->busy_.unlock();
    if (crew != nullptr) return;
  }
  for (int64_t i = 0; i < count; ++i) body(context, i);
}

int ThreadPool::default_threads() {
  constexpr int kMost = 8;
  cpu_set_t set;
  const int processors = sched_getaffinity(0, sizeof(set), &set) == 0
                             ? CPU_COUNT(&set)
                             : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(processors, 1, kMost);
}

}  // namespace opmux::base
