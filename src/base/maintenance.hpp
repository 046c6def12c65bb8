#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/locks.hpp"
#include "base/system/clock.hpp"
#include "base/system/files.hpp"
#include "base/system/process.hpp"

namespace opmux::base {

/// Runs background jobs that are due at a time or when a descriptor becomes readable. They run on
/// one thread, which starts with the first job, or inside tick(). A forked child has no such thread
/// until revive(), and recreates its jobs. Thread-safe.
class Maintenance {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  /// A recurring task. Runs of a job never overlap.
  class Job {
   public:
    virtual ~Job() = default;
    /// Returns the time of the next run; kNever: only when the descriptor is ready.
    virtual uint64_t run(uint64_t now_ns) = 0;
    /// Queried before each wait; -1 if the job has no descriptor.
    virtual int descriptor() const { return -1; }
  };
  /// Called when the job is added, and again in a forked child. Objects that it uses must outlive
  /// the Maintenance.
  using MakeJob = std::function<std::unique_ptr<Job>()>;

  Maintenance(const Clock& clock, bool own_thread) : clock_(clock), own_thread_(own_thread) {}
  ~Maintenance();
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  /// Adds a job; its first run is as soon as possible. Throws std::bad_alloc, and adds nothing, if
  /// there is not enough memory.
  void add(MakeJob make);
  /// Runs the jobs that are due, unless another thread is running jobs.
  void tick(uint64_t now_ns);
  /// Called on slow paths: restarts the thread if a fork lost it. Otherwise costs one comparison.
  void revive() {
    const uint64_t started = started_in_.load(std::memory_order_relaxed);
    if (started != 0 && started != process_number()) [[unlikely]]
      start();
  }
  /// Ends the thread. No job runs afterwards, except inside tick().
  void stop();
  /// Number of runs that ended for lack of memory. Such a job runs again a second later.
  uint64_t postponed() const { return postponed_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    MakeJob make;
    std::unique_ptr<Job> job;
    std::atomic<uint64_t> due{0};
    uint64_t made_in = 0;  ///< number of the process that created the job
  };
  struct Thread;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  void start();
  void start_thread();
  void serve(Thread& own);
  void run_job(Entry& entry, uint64_t now_ns);
  /// Runs the jobs that are due; returns when the next one is. The caller holds running_.
  uint64_t run_due(uint64_t now_ns, const std::vector<const Entry*>& ready);
  void wait(Thread& own, uint64_t due_ns, std::vector<const Entry*>& ready);

  const Clock& clock_;
  const bool own_thread_;
  Published<Entries> entries_;
  ForkMutex running_, starting_;
  /// Number of the process that started the thread; 0 = not started.
  std::atomic<uint64_t> started_in_{0};
  std::atomic<Thread*> thread_{nullptr};
  std::atomic<uint64_t> postponed_{0};
};

/// A job that other threads wake. Runs after each wake(), and at the times that it returns. The
/// first wake() adds it to the maintenance. Thread-safe.
class WokenJob {
 public:
  /// As Maintenance::Job::run().
  using Run = std::function<uint64_t(uint64_t now_ns)>;

  /// `make` is called when the job is added, and again in a forked child. The maintenance must be
  /// stopped before the WokenJob is destroyed.
  WokenJob(Maintenance& maintenance, std::function<Run()> make)
      : maintenance_(maintenance), make_(std::move(make)) {}
  WokenJob(const WokenJob&) = delete;
  WokenJob& operator=(const WokenJob&) = delete;

  /// Without memory to add the job, the next wake() tries it again.
  void wake();

 private:
  class Job;

  Maintenance& maintenance_;
  const std::function<Run()> make_;
  std::atomic<bool> added_{false};
  std::atomic<int> wake_{-1};  ///< eventfd of the job in this process
};

}  // namespace opmux::base
