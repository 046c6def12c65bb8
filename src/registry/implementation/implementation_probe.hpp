#pragma once

#include <atomic>
#include <functional>
#include <string>

namespace opmux::registry {

struct ImplementationRecord;

/// The answer to whether one implementation can run in this process, beside that of its backend.
/// The function is called when it is first needed, and its answer is kept. Thread-safe.
class ImplementationProbe {
 public:
  /// `ask` returns an empty text if the implementation can run, else the reason.
  explicit ImplementationProbe(std::function<std::string()> ask) : ask_(std::move(ask)) {}
  ~ImplementationProbe() { delete answer_.load(std::memory_order_acquire); }
  ImplementationProbe(const ImplementationProbe&) = delete;
  ImplementationProbe& operator=(const ImplementationProbe&) = delete;

  bool answered() const { return answer_.load(std::memory_order_acquire) != nullptr; }
  /// The reason why the implementation cannot run; empty if it can. Threads that ask at the same
  /// time do not wait for each other, because the function may need a lock that one of them holds,
  /// such as Python's; the first answer counts. Throws std::bad_alloc; the next call asks again.
  const std::string& why_not() const;

 private:
  std::function<std::string()> ask_;
  mutable std::atomic<const std::string*> answer_{nullptr};
};

/// Why this process cannot run an implementation: the answer of its backend, then of its probe;
/// empty if it can. Asks them if they were not asked yet.
std::string why_unavailable(const ImplementationRecord& implementation);

}  // namespace opmux::registry
