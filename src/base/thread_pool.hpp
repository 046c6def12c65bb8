#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/openmp.hpp"
#include "base/process.hpp"

namespace opmux::base {

/// Threads that help with one loop at a time. They start with the first loop that is shared out,
/// sleep when there was nothing to do for a while, and end with the pool. Whoever comes while they
/// are at work, be it from inside a piece of work, loops alone. A forked child gets threads of its
/// own. Instead of its own, a pool may use the threads of OpenMP. Thread-safe.
class ThreadPool {
 public:
  /// `threads` counts the one that loops; below two there is never another.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// From now on loops run on OpenMP's threads, on as many as it allows the thread that loops, but
  /// not more than `limit` (0: no limit). In a forked child, where OpenMP's threads are not, they
  /// run on the pool's own again. The first call counts.
  void use_openmp(const OpenMp& openmp, int limit);

  /// On which a loop of the calling thread may run now.
  int threads() const;

  /// What parallel_for takes for a loop on at most so many threads. Lives as long as the pool.
  void* lend(int threads);

  /// body(context, i) for each i in [0, count), in any order; returns when all have returned. Has
  /// the type that abi.h wants. The body throws nothing.
  static void parallel_for(void* lent, int64_t count, void* context,
                           void (*body)(void* context, int64_t index));

  /// As many as this process has processors, but not more than eight.
  static int default_threads();

 private:
  struct Lent {
    ThreadPool* pool;
    int threads;
  };
  class Crew;
  Crew* crew();
  /// Null if the pool's own threads are used.
  const OpenMp* openmp() const;
  int own_threads() const { return static_cast<int>(lent_.size()) - 1; }

  std::vector<Lent> lent_;
  std::vector<Lent> lent_openmp_;  ///< written before openmp_
  std::atomic<const OpenMp*> openmp_{nullptr};
  uint64_t openmp_process_ = 0;
  ForkMutex switching_;
  ForkMutex busy_;
  std::unique_ptr<Crew> crew_;  ///< belongs to whoever holds busy_
};

}  // namespace opmux::base
