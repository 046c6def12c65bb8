#include "runtime/state_page_job.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/thread_time.hpp"
#include "runtime/core.hpp"
#include "telemetry/process_mark.hpp"
#include "telemetry/state_page_file.hpp"

namespace opmux::runtime {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
/// Time until a change is written; doubled while nothing changes.
constexpr uint64_t kPageInterval = 250 * kMillisecond;
/// The file is rewritten this often even without a change, so that its age shows that the process
/// is alive.
constexpr int64_t kOldestPageMs = 10'000;
/// The time between two writes is at least this many times the cost of one.
constexpr uint64_t kRestFactor = 100;

int64_t system_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

uint64_t next_page_number() {
  static std::atomic<uint64_t> count{0};
  return ++count;
}

/// Writes the status file of a runtime periodically.
class StatePageJob final : public Maintenance::Job {
 public:
  StatePageJob(Core& core, const std::string& folder, uint64_t number, int64_t since)
      : core_(core), number_(number), since_(since), file_(folder) {
    page_.mark = telemetry::own_mark();
    page_.process.pid = ::getpid();
    page_.process.started = telemetry::own_start(page_.mark);
    ready_ = told(file_.prepare());
  }

  uint64_t run(uint64_t now_ns) override {
    if (!ready_) return Maintenance::kNever;
    const uint64_t start = base::thread_time_ns();
    const bool changed = write();
    const uint64_t cost = base::thread_time_ns() - start;
    return now_ns + std::max(changed ? kPageInterval : 2 * kPageInterval, kRestFactor * cost);
  }

 private:
  /// Returns whether the contents changed.
  bool write() {
    page_.process.name = telemetry::own_name();
    page_.process.runtimes.assign(1, state_of(core_));
    page_.process.runtimes.front().number = number_;
    page_.process.runtimes.front().since = since_;
    std::string body = telemetry::state_page_body(page_);
    const int64_t now = system_ms();
    const bool changed = body != body_;
    if (!changed && now - written_ < kOldestPageMs) return false;
    if (!told(file_.replace(telemetry::state_page_text(body, now, ++updates_)))) return false;
    body_ = std::move(body);
    written_ = now;
    return changed;
  }

  /// Logs a failure; returns whether the status is ok.
  bool told(const Status& status) {
    if (status.ok()) return true;
    core_.log().tell(Level::warning, "state_page.file", "", "", status.reason(), [&] {
      return "the status file cannot be written: " + std::string(status.message());
    });
    return false;
  }

  Core& core_;
  const uint64_t number_;
  const int64_t since_;
  telemetry::StatePageFile file_;
  telemetry::StatePage page_;
  std::string body_;
  int64_t written_ = 0;
  uint64_t updates_ = 0;
  bool ready_ = false;
};

}  // namespace

Maintenance::MakeJob state_page_job(Core& core, std::string folder) {
  return
      [&core, folder = std::move(folder), number = next_page_number(), since = system_ms() / 1000] {
        return std::make_unique<StatePageJob>(core, folder, number, since);
      };
}

}  // namespace opmux::runtime
