#include "base/maintenance.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <mutex>
#include <system_error>

#include "base/memory.hpp"
#include "base/system/process.hpp"

namespace opmux::base {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
/// Upper bound of a wait, in case the clock is not steady.
constexpr uint64_t kLongestWait = 60'000 * kMillisecond;
/// How long a job waits that ended for lack of memory.
constexpr uint64_t kRetryNs = 1000 * kMillisecond;
/// A value of `started_in_` that is the number of no process.
constexpr uint64_t kNotStarted = UINT64_MAX;

int new_eventfd() { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void wake_by(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof(one));
}

/// Makes the descriptor unreadable until the next wake_by().
void drain(int descriptor) {
  uint64_t calls = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor, &calls, sizeof(calls));
}

}  // namespace

struct Maintenance::Thread {
  Descriptor wake{new_eventfd()};
  std::atomic<bool> ending{false};
  uint64_t process = process_number();
  std::thread thread;

  void call() const { wake_by(wake.get()); }
};

Maintenance::~Maintenance() { stop(); }

void Maintenance::stop() {
  Thread* const own = thread_.exchange(nullptr);
  if (own == nullptr) return;
  // A forked child does not have the parent's thread, so there is nothing to join; the object is
  // leaked.
  if (own->process != process_number()) return;
  own->ending.store(true);
  own->call();
  if (own->thread.joinable()) own->thread.join();
  delete own;
}

void Maintenance::add(MakeJob make) {
  auto entry = std::make_shared<Entry>();
  entry->make = std::move(make);
  entry->job = entry->make();
  entry->made_in = process_number();
  entries_.update([&](Entries& entries) {
    entries.push_back(entry);
    return true;
  });
  if (own_thread_) start();
}

void Maintenance::start() {
  const std::lock_guard lock(starting_);
  Thread* const present = thread_.load();
  if (present != nullptr && present->process == process_number()) {
    started_in_.store(process_number(), std::memory_order_relaxed);
    present->call();
    return;
  }
  // Without memory, revive() tries it again.
  const bool tried = if_memory([&] { start_thread(); });
  started_in_.store(tried ? process_number() : kNotStarted, std::memory_order_relaxed);
}

/// If no thread can be created, tick() still runs the jobs.
void Maintenance::start_thread() {
  auto own = std::make_unique<Thread>();
  if (!own->wake) return;
  const BlockedSignals blocked;
  try {
    own->thread = std::thread([this, thread = own.get()] { serve(*thread); });
  } catch (const std::system_error&) {
    return;
  }
  thread_.store(own.release());
}

void Maintenance::serve(Thread& own) {
  pthread_setname_np(pthread_self(), "opmux");
  std::vector<const Entry*> ready;
  while (!own.ending.load()) {
    uint64_t due = 0;
    {
      const std::lock_guard lock(running_);
      due = run_due(clock_.now_ns(), ready);
    }
    // Without memory to wait for all descriptors, all jobs run again in a while.
    if (!if_memory([&] { wait(own, due, ready); })) {
      ready.clear();
      postponed_.fetch_add(1, std::memory_order_relaxed);
      pollfd waiting{own.wake.get(), POLLIN, 0};
      if (::poll(&waiting, 1, kRetryNs / kMillisecond) > 0) drain(own.wake.get());
    }
  }
}

void Maintenance::wait(Thread& own, uint64_t due_ns, std::vector<const Entry*>& ready) {
  std::vector<pollfd> waiting{{own.wake.get(), POLLIN, 0}};
  std::vector<const Entry*> owners;
  {
    const std::lock_guard lock(running_);
    const std::shared_ptr<const Entries> entries = entries_.get();
    for (const auto& entry : *entries) {
      if (entry->job->descriptor() < 0) continue;
      waiting.push_back({entry->job->descriptor(), POLLIN, 0});
      owners.push_back(entry.get());
    }
  }
  ready.clear();
  ready.reserve(owners.size());
  const uint64_t now = clock_.now_ns();
  const uint64_t left = due_ns <= now ? 0 : std::min(due_ns - now, kLongestWait);
  const auto milliseconds = static_cast<int>((left + kMillisecond - 1) / kMillisecond);
  if (::poll(waiting.data(), waiting.size(), milliseconds) <= 0) return;
  if (waiting[0].revents != 0) drain(own.wake.get());
  for (size_t i = 0; i < owners.size(); ++i) {
    if (waiting[i + 1].revents != 0) ready.push_back(owners[i]);
  }
}

void Maintenance::run_job(Entry& entry, uint64_t now_ns) {
  const bool ran =
      if_memory([&] { entry.due.store(entry.job->run(now_ns), std::memory_order_relaxed); });
  if (ran) return;
  postponed_.fetch_add(1, std::memory_order_relaxed);
  entry.due.store(now_ns + kRetryNs, std::memory_order_relaxed);
}

uint64_t Maintenance::run_due(uint64_t now_ns, const std::vector<const Entry*>& ready) {
  uint64_t next = kNever;
  const std::shared_ptr<const Entries> entries = entries_.get();
  for (const auto& entry : *entries) {
    if (entry->made_in != process_number()) {
      std::unique_ptr<Job> made;
      if (!if_memory([&] { made = entry->make(); })) {
        next = std::min(next, now_ns + kRetryNs);
        continue;
      }
      // The fork may have interrupted its run, so it is not destroyed.
      (void)entry->job.release();
      entry->job = std::move(made);
      entry->made_in = process_number();
      entry->due.store(0, std::memory_order_relaxed);
    }
    const bool asked = std::ranges::find(ready, entry.get()) != ready.end();
    if (asked || entry->due.load(std::memory_order_relaxed) <= now_ns) run_job(*entry, now_ns);
    next = std::min(next, entry->due.load(std::memory_order_relaxed));
  }
  return next;
}

void Maintenance::tick(uint64_t now_ns) {
  const std::unique_lock lock(running_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::vector<const Entry*> ready;
  const std::shared_ptr<const Entries> entries = entries_.get();
  for (const auto& entry : *entries) {
    pollfd waiting{entry->job->descriptor(), POLLIN, 0};
    if (waiting.fd >= 0 && ::poll(&waiting, 1, 0) > 0) ready.push_back(entry.get());
  }
  run_due(now_ns, ready);
}

class WokenJob::Job final : public Maintenance::Job {
 public:
  Job(Run run, std::atomic<int>& wake) : run_(std::move(run)), wake_(new_eventfd()) {
    wake.store(wake_.get(), std::memory_order_release);
  }
  uint64_t run(uint64_t now_ns) override {
    drain(wake_.get());
    return run_(now_ns);
  }
  int descriptor() const override { return wake_.get(); }

 private:
  const Run run_;
  const Descriptor wake_;
};

void WokenJob::wake() {
  if (added_.exchange(true)) return wake_by(wake_.load(std::memory_order_acquire));
  const bool added = if_memory(
      [&] { maintenance_.add([this] { return std::make_unique<Job>(make_(), wake_); }); });
  if (!added) added_.store(false);
}

}  // namespace opmux::base
