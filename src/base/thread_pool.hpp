#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/system/process.hpp"

namespace opmux::base {

/// Functions of the OpenMP runtime that the process has already loaded. opmux never loads one,
/// because two runtimes in one process would have twice the threads.
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* context, unsigned threads, unsigned flags);
  int (*max_threads)();
};

/// Returns the loaded OpenMP runtime. Null if none is loaded or the process was forked. Only GNU's
/// runtime is supported: any loaded library whose file name starts with "libgomp".
const OpenMp* loaded_openmp();

/// A pool of threads that work on one loop at a time. The threads start with the first parallel
/// loop, sleep while there is no work, and end with the pool. A loop that starts while the pool is
/// busy, including a nested loop, runs on its calling thread alone. A forked child starts new
/// threads. The pool can use OpenMP's threads instead. Thread-safe.
class ThreadPool {
 public:
  /// `threads` includes the calling thread; with less than two, all loops run on it alone.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Runs later loops on OpenMP's threads: as many as OpenMP allows the calling thread, at most
  /// `limit` (0: no limit). A forked child does not have OpenMP's threads and uses the pool's
  /// again. Only the first call has an effect.
  void use_openmp(const OpenMp& openmp, int limit);

  /// Number of threads that a loop of the calling thread may use now.
  int threads() const;

  /// Returns the handle that parallel_for takes for a loop on at most `threads` threads. Valid as
  /// long as the pool.
  void* lend(int threads);

  /// Calls body(context, i) for each i in [0, count), in any order, and returns when all calls have
  /// returned. Has the type of opmux_parallel_for_fn in abi.h. The body must not throw.
  static void parallel_for(void* lent, int64_t count, void* context,
                           void (*body)(void* context, int64_t index));

  /// The number of processors available to this process, at most eight.
  static int default_threads();

 private:
  struct Lent {
    ThreadPool* pool;
    int threads;
  };
  class Crew;
  Crew* crew();
  /// Null if the pool uses its threads rather than OpenMP's.
  const OpenMp* openmp() const;
  int own_threads() const { return static_cast<int>(lent_.size()) - 1; }

  std::vector<Lent> lent_;
  std::vector<Lent> lent_openmp_;  ///< published by the release store of openmp_
  std::atomic<const OpenMp*> openmp_{nullptr};
  uint64_t openmp_process_ = 0;
  ForkMutex switching_;
  ForkMutex busy_;
  std::unique_ptr<Crew> crew_;  ///< guarded by busy_
};

}  // namespace opmux::base
