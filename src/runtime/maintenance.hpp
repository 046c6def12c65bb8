#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/process.hpp"
#include "base/published.hpp"

namespace opmux::runtime {

/// Does what is due at a time of its own: jobs with a next time, and jobs that wait for a
/// descriptor. On one thread, which starts with the first job, or inside tick(). A forked child has
/// no such thread until revive(), and makes its jobs anew. Thread-safe.
class Maintenance {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  /// One thing that is done again and again, one run at a time.
  class Job {
   public:
    virtual ~Job() = default;
    /// Returns when it wants to run next; kNever: when its descriptor is ready.
    virtual uint64_t run(uint64_t now_ns) = 0;
    /// Asked before each wait; -1 if there is none.
    virtual int descriptor() const { return -1; }
  };
  /// Called when the job is added, and again in a forked child; what it uses must outlive this.
  using MakeJob = std::function<std::unique_ptr<Job>()>;

  Maintenance(const base::Clock& clock, bool own_thread) : clock_(clock), own_thread_(own_thread) {}
  ~Maintenance();
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  /// The first run is as soon as possible.
  void add(MakeJob make);
  /// Runs what is due, unless another thread is at it.
  void tick(uint64_t now_ns);
  /// On cold paths: starts the thread again if a fork lost it. Costs a comparison otherwise.
  void revive() {
    const uint64_t started = started_in_.load(std::memory_order_relaxed);
    if (started != 0 && started != base::process_number()) [[unlikely]]
      start();
  }
  /// Ends the thread; nothing runs any more.
  void stop();

 private:
  struct Entry {
    MakeJob make;
    std::unique_ptr<Job> job;
    std::atomic<uint64_t> due{0};
    uint64_t made_in = 0;  ///< the process that the job belongs to
  };
  struct Thread;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  void start();
  void serve(Thread& own);
  /// Returns when the next job is due. The caller holds running_.
  uint64_t run_due(uint64_t now_ns, const std::vector<const Entry*>& ready);
  void wait(Thread& own, uint64_t due_ns, std::vector<const Entry*>& ready);

  const base::Clock& clock_;
  const bool own_thread_;
  base::Published<Entries> entries_;
  base::ForkMutex running_, starting_;
  std::atomic<uint64_t> started_in_{0};  ///< number of the process that has, or should have, one
  std::atomic<Thread*> thread_{nullptr};
};

}  // namespace opmux::runtime
