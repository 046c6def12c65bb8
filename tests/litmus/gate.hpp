// Stops a thread at chosen points, so that a test can specify a schedule.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace litmus {

enum class Point {
  marked,          // Hot path: the hazard slot is set, the epoch word not read yet.
  checked,         // Hot path: the epoch word matched.
  loaded,          // Cold path: the state's address is read, but not its contents.
  entered,         // About to run.
  stored_current,  // Writer: the new state is stored, the epoch word is still old.
};

// One thread calls reach(), another one calls await() and open().
class Gate {
 public:
  explicit Gate(std::deque<Point> stops) : stops_(std::move(stops)) {}

  // Waits for open() if this is the next stop.
  void reach(Point point) {
    std::unique_lock lock(mutex_);
    if (stops_.empty() || stops_.front() != point) return;
    stops_.pop_front();
    stopped_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !stopped_; });
  }

  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_; });
  }

  void open() {
    std::lock_guard lock(mutex_);
    stopped_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Point> stops_;
  bool stopped_ = false;
};

}  // namespace litmus
